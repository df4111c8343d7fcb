import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chatStopTokens, chatTemplate, chatTemplates, encodeChat, logprobs, perplexity } from 'proofinfer';
import { collect, smallWorld } from './support.js';

const bits = (values) => Array.from(values, (value) => (Number.isNaN(value) ? null : new Uint32Array(Float32Array.of(value).buffer)[0]));
const ids = (count) => Array.from({ length: count }, (_, i) => (i === 0 ? 1 : 3 + ((i * 37) % 250)));

/** By its definition: appended one by one, each read off the logits before it. */
async function plainScores(model, tokens) {
  const session = await model.createSession();
  const values = [];
  for (const token of tokens) {
    values.push(values.length === 0 ? NaN : logprobs(session.logits(), [token])[0]);
    await session.append([token]);
  }
  await session.close();
  return bits(values);
}

test('messages become what the library makes of them', async (t) => {
  const { tokenizer } = await smallWorld(t);
  assert.deepEqual(chatTemplates(), ['llama2', 'llama3', 'chatml', 'zephyr', 'mistral']);
  assert.equal(chatTemplate(tokenizer), null);
  assert.throws(() => encodeChat(tokenizer, [{ role: 'user', content: 'x' }]), { code: 'PROOFINFER_E_UNSUPPORTED', message: /no chat template/ });
  const messages = [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: Buffer.from('Hi') },
    { role: 'user', content: 'na\u00efve \u{1f600}' },
  ];
  const expected = [
    ...tokenizer.encodeSync('[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHello [/INST] Hi '),
    tokenizer.eos,
    ...tokenizer.encodeSync('[INST] na\u00efve \u{1f600} [/INST]'),
  ];
  assert.deepEqual([...encodeChat(tokenizer, messages, { template: 'llama2' })], expected);
  assert.deepEqual([...chatStopTokens(tokenizer, 'llama2')], [tokenizer.eos]);
  const asked = tokenizer.decode(encodeChat(tokenizer, messages.slice(1, 2), { template: 'chatml' }));
  const told = tokenizer.decode(encodeChat(tokenizer, messages.slice(1, 2), { template: 'chatml', answer: false }));
  assert.equal(asked, `${told}<|im_start|>assistant\n`);
  assert.ok(encodeChat(tokenizer, Array(400).fill({ role: 'user', content: '' }), { template: 'zephyr' }).length > 400);
});

test('wrong messages are named', async (t) => {
  const { tokenizer, model } = await smallWorld(t);
  const encode = (messages, template = 'chatml') => encodeChat(tokenizer, messages, { template });
  assert.throws(() => encode([{ role: 'robot', content: 'x' }]), /messages\[0\]\.role: expected system, user, assistant, found robot/);
  assert.throws(() => encode(['x']), /messages\[0\]: expected \{ role, content \}/);
  assert.throws(() => encode([{ role: 'user', content: 7 }]), TypeError);
  assert.throws(() => encode([]), { code: 'PROOFINFER_E_ARGUMENT', message: /there are 0 messages/ });
  assert.throws(() => encode([{ role: 'user', content: 'x' }], 'robots'), { code: 'PROOFINFER_E_ARGUMENT', message: /'robots' is not known/ });
  assert.throws(() => encode([{ role: 'user', content: 'x' }], 7), /template: expected a string, found number/);
  const session = await model.createSession({ contextLength: 8 });
  const long = [{ role: 'user', content: 'x'.repeat(20) }];
  assert.throws(() => session.chat(tokenizer, long, { template: 'llama2' }), /the session has 8 positions/);
  await session.close();
});

test('a growing chat evaluates what is new and answers as a fresh one', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const session = await model.createSession();
  const options = { template: 'llama2', maxTokens: 5 };
  const messages = [{ role: 'user', content: 'Hello' }];
  const { text } = await collect(session.chat(tokenizer, messages, options));
  messages.push({ role: 'assistant', content: text }, { role: 'user', content: 'More' });
  const again = session.chat(tokenizer, messages, options);
  assert.ok(session.position >= encodeChat(tokenizer, messages.slice(0, 1), options).length);
  const fresh = await model.createSession();
  assert.deepEqual(await collect(again), await collect(fresh.chat(tokenizer, messages, options)));
  const ended = fresh.chat(tokenizer, messages, options);
  ended.force(tokenizer.eos);
  assert.equal((await ended.next()).value.stopReason, 'token');
  await Promise.all([session.close(), fresh.close()]);
});

test('scores are those of appending one by one, alone and together', async (t) => {
  const { model } = await smallWorld(t);
  const tokens = ids(100);
  const expected = await plainScores(model, tokens);
  const session = await model.createSession();
  assert.deepEqual([...bits(await session.score(tokens.slice(0, 30))), ...bits(await session.score(tokens.slice(30)))], expected);
  assert.deepEqual([...session.tokens], tokens);
  const texts = [tokens.slice(0, 7), [], [1], tokens];
  const found = await model.score(texts);
  for (const [i, text] of texts.entries()) assert.deepEqual(bits(found[i]), await plainScores(model, text));
  assert.deepEqual(await model.score([]), []);
  await session.close();
});

test('scoring refuses what is wrong and stops on a signal', async (t) => {
  const { model } = await smallWorld(t);
  const session = await model.createSession();
  await assert.rejects(session.score([1, model.vocabSize]), { code: 'PROOFINFER_E_ARGUMENT', message: /token 1 is/ });
  await assert.rejects(model.score([[1], new Int32Array(model.info.seqLen + 1)]), { code: 'PROOFINFER_E_CONTEXT', message: /text 1 has/ });
  await assert.rejects(model.score([[1, 2]], { signal: AbortSignal.abort() }), { name: 'AbortError' });
  await assert.rejects(session.score([1, 2], { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.equal(session.position, 0);
  await session.close();
});

test('perplexity is of what was scored', () => {
  assert.ok(Math.abs(perplexity([NaN, -1, -3]) - Math.exp(2)) < 1e-12);
  assert.ok(Number.isNaN(perplexity([NaN])));
});
