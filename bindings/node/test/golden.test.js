import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Model, Sampler, Tokenizer, encodeChat } from 'proofinfer';
import { checkpoint, collect, golden, goldenText, noRealModels, realModel, tokenizerFile } from './support.js';

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');

function fileOf(c) {
  if (c.seed === null) return readFileSync(realModel(`${c.name}.bin`));
  const data = checkpoint(c.shape, c.seed);
  assert.equal(sha256(data), c.file_sha256, 'the checkpoint is not the one of the figures');
  return data;
}

function vocabularyOf(c) {
  if (c.seed === null) return readFileSync(realModel('tok512.bin'));
  return tokenizerFile(Array.from({ length: Math.abs(c.shape.vocab_size) }, (_, i) => `p${i}`));
}

for (const c of golden('run_c_f32.json').cases) {
  test(`logits and ids of ${c.name}`, { skip: c.seed === null && noRealModels }, async () => {
    const model = await Model.fromBytes(fileOf(c));
    const tokenizer = await Tokenizer.fromBytes(vocabularyOf(c), model);
    const session = await model.createSession();
    await session.append(c.tokens, { logits: 'all' });
    const hash = createHash('sha256');
    for (let position = 0; position < c.tokens.length; position++) hash.update(session.logits(position));
    assert.equal(hash.digest('hex'), c.logits_sha256);
    const last = new Uint32Array(session.logits().buffer).slice(0, c.last_logits_hex.length);
    assert.deepEqual(Array.from(last, (bits) => bits.toString(16).padStart(8, '0')), c.last_logits_hex);
    const check = async (want, settings) => {
      session.rewind(0);
      const { tokens } = await collect(session.generate(tokenizer, [1], { ...settings, maxTokens: want.length, stopTokens: [] }));
      assert.deepEqual(tokens, want);
    };
    await check(c.greedy_from_1, {});
    for (const s of c.sampled) await check(s.ids, { temperature: s.temperature, topP: s.top_p, seed: s.seed });
    await Promise.all([session, tokenizer, model].map((handle) => handle.close()));
  });
}

for (const set of golden('tokenizer.json').sets) {
  test(`ids of ${set.tokenizer}`, { skip: noRealModels }, async () => {
    const tokenizer = await Tokenizer.open(realModel(set.tokenizer), set.vocab_size);
    for (const c of set.cases) {
      const text = c.text ?? Buffer.from(c.bytes_hex, 'hex');
      assert.deepEqual(Array.from(await tokenizer.encode(text)), c.ids);
      assert.deepEqual(Array.from(tokenizer.encodeSync(text)), c.ids);
    }
    await tokenizer.close();
  });
}

test('draws of the sampler', () => {
  // The seeds are 64-bit numbers, which JSON.parse would round.
  const seeds = Array.from(goldenText('sampler.json').matchAll(/"seed": ?(\d+)/g), (m) => BigInt(m[1]));
  const { cases } = golden('sampler.json');
  assert.equal(seeds.length, cases.length);
  cases.forEach((c, i) => {
    const bytes = Buffer.from(c.logits_hex, 'hex');
    const logits = Float32Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatBE(4 * at));
    const sampler = Sampler.create(logits.length, { temperature: c.temperature, topP: c.top_p, seed: seeds[i] });
    assert.deepEqual(c.ids.map(() => sampler.sample(logits)), c.ids, `case ${i}`);
    sampler.close();
  });
});

const smollm2 = process.env.PROOFINFER_SMOLLM2;

test('a real model holds the recorded talk', { skip: !smollm2 && 'SKIPPED[smollm2]: PROOFINFER_SMOLLM2 names no file' }, async () => {
  const talk = golden('smollm2.json');
  const model = await Model.open(smollm2);
  const tokenizer = await Tokenizer.open(smollm2, 0);
  const session = await model.createSession({ contextLength: 256 });
  const messages = [];
  for (const turn of talk.turns) {
    messages.push({ role: 'user', content: turn.user });
    assert.deepEqual([...encodeChat(tokenizer, messages)], turn.prompt);
    assert.deepEqual(await collect(session.chat(tokenizer, messages)), { tokens: turn.answer, text: turn.text });
    messages.push({ role: 'assistant', content: turn.text });
  }
  await Promise.all([session, tokenizer, model].map((handle) => handle.close()));
});
