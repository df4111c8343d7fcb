import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  AbortError, LibraryError, Model, ProofinferError, Sampler, Session, Tokenizer, build, convert, kernelSets, loadLibrary, logprobs, maxWorkers,
  options, selfTest, setMaxWorkers, topLogprobs, version,
} from 'proofinfer';
import { checkpoint, collect, small, smallCheckpoint, smallPieces, smallTokenizer, smallWorld, temporaryFolder, tokenizerFile } from './support.js';

const code = (name) => ({ name: 'ProofinferError', code: `PROOFINFER_E_${name}` });

test('the library tells its version, kernels and options', async () => {
  assert.match(version(), /^1\.\d+\.\d+$/);
  assert.ok(build().length > 0);
  assert.deepEqual(kernelSets()[0], { name: 'scalar', available: true });
  await selfTest();
  const seed = options().find((option) => option.name === 'seed');
  assert.equal(seed.type, 'unsigned integer');
  assert.equal(seed.default, '1');
  assert.deepEqual(seed.scope, ['sampler']);
  assert.equal(loadLibrary(), loadLibrary(loadLibrary()));
  assert.throws(() => loadLibrary('/another/libproofinfer.so.1'), LibraryError);
});

test('a model tells its shape', async (t) => {
  const { model } = await smallWorld(t, { threads: 2 });
  const { info } = model;
  const { dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len } = small;
  const { hiddenDim, layers, heads, kvHeads, vocabSize, seqLen } = info;
  assert.deepEqual(
    [info.dim, hiddenDim, layers, heads, kvHeads, vocabSize, seqLen],
    [dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len],
  );
  assert.equal(info.format, 'llama2.c legacy');
  assert.equal(info.elementType, 'f32');
  assert.equal(info.threads, 2);
  assert.equal(info.sharedClassifier, true);
  assert.equal(info.fileBytes, smallCheckpoint.length);
  assert.ok(info.memoryBytes >= info.weightBytes && info.weightBytes >= 4 * info.parameterCount);
  const wq = model.tensors().find((tensor) => tensor.name === 'layers.1.wq');
  assert.deepEqual([wq.rows, wq.columns, wq.fileBytes, wq.quantized], [64, 64, 16384, false]);
});

test('paths are UTF-8', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'modèle \u{1F999}.bin');
  writeFileSync(path, smallCheckpoint);
  writeFileSync(join(folder, 'z.bin'), smallTokenizer);
  const model = await Model.open(path);
  const tokenizer = await Tokenizer.open(join(folder, 'z.bin'), model.vocabSize);
  assert.deepEqual([tokenizer.vocabSize, tokenizer.bos, tokenizer.eos], [512, 1, 2]);
  await Promise.all([model.close(), tokenizer.close()]);
});

test('convert writes a quantized model', async () => {
  const folder = temporaryFolder();
  const [from, to] = [join(folder, 'from.bin'), join(folder, 'to.bin')];
  // Its sizes have a common power of two.
  writeFileSync(from, checkpoint({ ...small, hidden_dim: 192 }, 3));
  await convert(from, to, 'version 2');
  const model = await Model.open(to, { threads: 2, shareFromBytes: 0 });
  assert.deepEqual([model.info.elementType, model.info.groupSize], ['q8_0', 64]);
  await model.close();
  await assert.rejects(convert(from, to, 'version 2', { groupSize: 48 }), code('ARGUMENT'));
  await assert.rejects(convert(`${from}?`, to, 'version 1'), code('IO'));
  await assert.rejects(convert(from, to, 'version 3'), TypeError);
  await assert.rejects(convert(from, to, 'legacy', { signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('a packed file is mapped', async () => {
  const folder = temporaryFolder();
  const [from, to] = [join(folder, 'from.bin'), join(folder, 'to.bin')];
  writeFileSync(from, smallCheckpoint);
  await convert(from, to, 'packed');
  const logits = async (path, mapped, options) => {
    const model = await Model.open(path, options);
    assert.equal(model.info.mapped, mapped);
    const session = await model.createSession();
    await session.append([1, 2]);
    const found = session.logits();
    await Promise.all([session.close(), model.close()]);
    return found;
  };
  const expected = await logits(from, false);
  assert.deepEqual(await logits(to, true), expected);
  assert.deepEqual(await logits(to, true, { verify: true }), expected);
  assert.deepEqual(await logits(to, false, { map: false }), expected);
  await assert.rejects(Model.open(to, { map: 1 }), TypeError);
});

test('clones and saved states go on with the same bits', async (t) => {
  const { model } = await smallWorld(t);
  const session = await model.createSession({ contextLength: 200 });
  await session.append(Array.from({ length: 100 }, (_, i) => i % 50));
  const state = await session.save();
  const clone = await session.clone();
  const restored = await model.createSession({ contextLength: 150 });
  await restored.restore(state);
  assert.deepEqual([clone.contextLength, clone.position, restored.position], [200, 100, 100]);
  assert.deepEqual(await clone.save(), state);
  assert.deepEqual(await restored.save(), state);
  for (const each of [session, clone, restored]) {
    await each.append([7, 8]);
    assert.deepEqual(each.logits(), session.logits());
  }
  await assert.rejects(session.restore(state.subarray(1)), code('UNRECOGNIZED'));
  await assert.rejects(session.restore(state.subarray(0, -1)), code('TRUNCATED'));
  await assert.rejects(session.restore('x'), TypeError);
  await assert.rejects(session.clone({ contextLength: 7 }), code('ARGUMENT'));
  await Promise.all([session, clone, restored].map((each) => each.close()));
});

test('failures carry code and message', async () => {
  await assert.rejects(Model.open('/nowhere/model.bin'), (error) => {
    assert.ok(error instanceof ProofinferError && error instanceof Error);
    assert.equal(error.code, 'PROOFINFER_E_IO');
    assert.equal(error.status, 4);
    assert.match(error.message, /\/nowhere\/model\.bin/);
    return true;
  });
  await assert.rejects(Model.open('a\0b'), code('ARGUMENT'));
  await assert.rejects(Model.fromBytes(new Uint8Array(0)), { name: 'ProofinferError' });
  await assert.rejects(Model.fromBytes(Buffer.from('<!DOCTYPE html><html><body>no model</body></html>')), code('UNRECOGNIZED'));
  await assert.rejects(Model.fromBytes(smallCheckpoint.subarray(0, 5000)), { name: 'ProofinferError' });
  await assert.rejects(Model.fromBytes(smallCheckpoint, { memoryLimit: 1000 }), code('LIMIT'));
  await assert.rejects(Tokenizer.fromBytes(smallTokenizer, 513), code('TRUNCATED'));
  for (const bad of [{ threads: 0 }, { threads: -1 }, { threads: 1e6 }, { temperature: -1 }, { temperature: NaN }, { topP: 2 }, { isa: 'z80' }])
    await assert.rejects(Model.fromBytes(smallCheckpoint, bad), code('ARGUMENT'));
});

test('wrong types are TypeErrors and RangeErrors', async (t) => {
  await assert.rejects(Model.open(7), TypeError);
  await assert.rejects(Model.fromBytes('text'), TypeError);
  await assert.rejects(Model.open('x', { thread: 2 }), /there is no thread; there are threads/);
  await assert.rejects(Model.open('x', { threads: 1.5 }), TypeError);
  await assert.rejects(Model.open('x', { signal: 'now' }), TypeError);
  await assert.rejects(Model.open('x', null), TypeError);
  await assert.rejects(Tokenizer.fromBytes(smallTokenizer, 2 ** 40), RangeError);
  assert.throws(() => new Model(), TypeError);
  assert.throws(() => Sampler.create(4, { seed: -1 }), RangeError);
  assert.throws(() => setMaxWorkers(0), RangeError);
  const { model, tokenizer } = await smallWorld(t);
  const session = await model.createSession();
  await assert.rejects(tokenizer.encode(7), TypeError);
  await assert.rejects(session.append([1, 'two']), TypeError);
  await assert.rejects(session.append([2 ** 31]), RangeError);
  await assert.rejects(session.append('12'), TypeError);
  await assert.rejects(session.append([1], { logits: 'some' }), TypeError);
  assert.throws(() => session.generate(model, [1]), TypeError);
  assert.throws(() => session.generate(tokenizer, [1], { sampler: {} }), TypeError);
  assert.throws(() => session.rewind(-1), RangeError);
  await session.close();
});

test('encode and decode go round trip', async (t) => {
  const { tokenizer } = await smallWorld(t);
  for (const text of ['', 'a', 'Hello the world', 'é\u{1F999}', '\0\x01', '日本語', 'the '.repeat(1000)]) {
    const tokens = await tokenizer.encode(text, { eos: true });
    assert.equal(tokens[0], 1);
    assert.equal(tokens.at(-1), 2);
    assert.deepEqual(tokenizer.encodeSync(text, { eos: true }), tokens);
    assert.equal(tokenizer.decode(tokens.subarray(0, -1)), text);
    assert.deepEqual(await tokenizer.encode(Buffer.from(text), { eos: true }), tokens);
  }
  assert.equal((await tokenizer.encode('', { bos: false })).length, 0);
  assert.deepEqual(tokenizer.decodeToken(3 + 10), Uint8Array.of(10));
  assert.equal(Buffer.from(tokenizer.decodeToken(3 + 10, { spelled: true })).toString(), '<0x0A>');
  const { bytes, score } = tokenizer.piece(3);
  assert.deepEqual([Buffer.from(bytes).toString(), score], ['<0x00>', -3]);
  assert.throws(() => tokenizer.decodeToken(512), code('ARGUMENT'));
});

test('a stream never cuts a character', async (t) => {
  const { tokenizer } = await smallWorld(t);
  const stream = tokenizer.createStream();
  const pieces = Array.from(Buffer.from('é\u{1F999}'), (byte) => stream.push(3 + byte));
  assert.deepEqual(pieces, ['', 'é', '', '', '', '\u{1F999}']);
  assert.equal(stream.push(3 + 0xf0) + stream.flush() + stream.flush(), '\ufffd');
  await stream.close();
});

test('a session appends, rewinds and keeps logits', async (t) => {
  const { model } = await smallWorld(t);
  const session = await model.createSession({ contextLength: 16 });
  const tokens = [1, 5, 9, 200, 31, 77];
  await session.append(tokens);
  const want = session.logits();
  assert.equal(want.length, 512);
  assert.throws(() => session.logits(2), code('STATE'));
  assert.throws(() => session.logits(6), code('ARGUMENT'));
  assert.throws(() => session.logits(5, new Float32Array(511)), code('BUFFER'));
  session.rewind(2);
  await session.append(Int32Array.from(tokens.slice(2)), { logits: 'all' });
  assert.deepEqual(session.logits(5), want);
  assert.deepEqual(Array.from(session.tokens), tokens);
  await assert.rejects(session.append(new Int32Array(11)), code('CONTEXT'));
  await assert.rejects(session.append([512]), code('ARGUMENT'));
  assert.throws(() => session.rewind(7), code('ARGUMENT'));
  assert.deepEqual([session.position, session.contextLength], [6, 16]);
  assert.ok(session.memoryBytes > 0);
  await assert.rejects(model.createSession({ contextLength: 257 }), code('ARGUMENT'));
  await session.close();
});

test('promises of one session keep their order, other calls are refused meanwhile', async (t) => {
  const { model } = await smallWorld(t);
  const session = await model.createSession();
  const work = Array.from({ length: 60 }, (_, i) => session.append([i, i + 1, i + 2]));
  try {
    session.rewind(0);
  } catch (error) {
    assert.equal(error.code, 'PROOFINFER_E_BUSY');
  }
  await Promise.all(work);
  const tokens = Array.from(session.tokens).slice(-180);
  assert.deepEqual(tokens.slice(-3), [59, 60, 61]);
  await session.close();
});

test('a batch gives the bits of running alone', async (t) => {
  const { model } = await smallWorld(t);
  const lists = [[1, 9, 8], [1, 100, 3], [1, 7, 300]];
  const batch = model.createBatch(16);
  const sessions = await Promise.all(lists.map(() => model.createSession({ contextLength: 8 })));
  lists.forEach((list, i) => list.forEach((token, j) => batch.add(sessions[i], token, { logits: j === 2 })));
  assert.throws(() => batch.add(sessions[0], 512), code('ARGUMENT'));
  await batch.evaluate();
  const alone = await model.createSession();
  for (let i = 0; i < lists.length; i++) {
    alone.rewind(0);
    await alone.append(lists[i]);
    assert.deepEqual(sessions[i].logits(2), alone.logits(2));
  }
  batch.add(sessions[0], 4);
  batch.clear();
  await batch.evaluate();
  assert.equal(sessions[0].position, 3);
  assert.throws(() => model.createBatch(0), code('ARGUMENT'));
  await Promise.all([batch, alone, ...sessions].map((handle) => handle.close()));
});

test('a sampler repeats its draws and refuses what it cannot sample', async () => {
  const sampler = Sampler.create(4, { temperature: 1, seed: 42n });
  assert.throws(() => sampler.sample(Float32Array.of(1, 2, NaN, 4)), code('NOT_FINITE'));
  assert.throws(() => sampler.sample(Float32Array.of(1, 2, 3)), code('ARGUMENT'));
  assert.throws(() => sampler.sample([1, 2, 3, 4]), TypeError);
  const draws = () => Array.from({ length: 32 }, () => sampler.sample(new Float32Array(4)));
  const first = draws();
  sampler.reseed(42);
  assert.deepEqual(draws(), first);
  await sampler.close();
});

test('filters, penalties, biases, bans and masks', async () => {
  const logits = Float32Array.from({ length: 40 }, (_, i) => -Math.abs(i - 20));
  for (const [settings, wanted] of [
    [{ topK: 3 }, [19, 20, 21]],
    [{ minP: 0.3 }, [19, 20, 21]],
    [{ typicalP: 0.01 }, [19]],
    [{ topK: 1 }, [20]],
  ]) {
    const sampler = Sampler.create(40, { temperature: 1, topP: 1, ...settings });
    const seen = new Set(Array.from({ length: 300 }, () => sampler.sample(logits)));
    assert.deepEqual([...seen].sort(), wanted);
  }
  for (const settings of [{ presencePenalty: 10 }, { frequencyPenalty: 10 }, { repetitionPenalty: 100 }]) {
    const sampler = Sampler.create(3, { penaltyWindow: 2, ...settings });
    const draw = () => sampler.sample(Float32Array.of(5, 4, 3));
    assert.deepEqual(Array.from({ length: 6 }, draw), [0, 1, 2, 0, 1, 2]);
    sampler.reseed(1);
    sampler.accept([0, 1]);
    assert.equal(draw(), 2);
    assert.throws(() => sampler.accept([3]), code('ARGUMENT'));
  }
  const sampler = Sampler.create(40);
  const draw = () => sampler.sample(Float32Array.from({ length: 40 }, (_, i) => i));
  sampler.setBias(new Map([[3, 100], [4, -1.5]]));
  assert.equal(draw(), 3);
  sampler.setBanned([3]);
  assert.equal(draw(), 39);
  sampler.setMask(Uint32Array.of(0b10110, 0));
  assert.equal(draw(), 4);
  sampler.setBias([[4, -3]]);
  assert.equal(draw(), 2);
  sampler.setMask(Uint32Array.of(8, 0));
  assert.throws(draw, code('STATE'));
  sampler.setMask(null);
  sampler.setBanned([]);
  assert.equal(draw(), 39);
  assert.throws(() => sampler.setBias([[40, 1]]), code('ARGUMENT'));
  assert.throws(() => sampler.setBias([[1, NaN]]), code('ARGUMENT'));
  assert.throws(() => sampler.setBias([[1, '2']]), TypeError);
  assert.throws(() => sampler.setBanned([-1]), code('ARGUMENT'));
  assert.throws(() => sampler.setMask(Uint32Array.of(1)), code('ARGUMENT'));
  assert.throws(() => sampler.setMask([1, 2]), TypeError);
});

test('log-probabilities are those of the model', async (t) => {
  const logits = Float32Array.of(0, 2, 1, 2);
  const total = logits.reduce((sum, x) => sum + Math.exp(x), 0);
  const all = logprobs(logits, [0, 1, 2, 3]);
  all.forEach((value, i) => assert.ok(Math.abs(value - (logits[i] - Math.log(total))) < 1e-6));
  assert.deepEqual(topLogprobs(logits, 3), [1, 3, 2].map((token) => ({ token, logprob: all[token] })));
  assert.throws(() => topLogprobs(logits, 5), RangeError);
  assert.throws(() => logprobs(logits, [4]), code('ARGUMENT'));
  assert.throws(() => topLogprobs(Float32Array.of(NaN), 1), code('NOT_FINITE'));
  const { model, tokenizer } = await smallWorld(t);
  const session = await model.createSession();
  let count = 0;
  for await (const piece of session.generate(tokenizer, [1, 70], { temperature: 1.5, maxTokens: 10, stopTokens: [], logprobs: 5 })) {
    assert.deepEqual(piece.topLogprobs, topLogprobs(session.logits(), 5));
    assert.deepEqual([piece.logprob], logprobs(session.logits(), [piece.token]));
    count++;
  }
  assert.equal(count, 10);
  await session.close();
});

test('stop strings are cut out and told', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  for (const [text, stopStrings, wanted, reason, which] of [
    ['a\u00e9bcd', ['bx', 'bcd'], 'a\u00e9', 'string', 'bcd'],
    ['abcx', ['bcd', Buffer.from('never')], 'abcx', 'length', null],
    ['a\u00e9', ['\u00e9'], 'a', 'string', '\u00e9'],
    ['ab', [], 'ab', 'length', null],
  ]) {
    const session = await model.createSession();
    const bytes = Buffer.from(text);
    const generation = session.generate(tokenizer, [70], { maxTokens: bytes.length, stopTokens: [], stopStrings });
    let found = '';
    for (const byte of bytes) {
      generation.force(3 + byte);
      const { value } = await generation.next();
      found += value.text;
      if (value.stopReason !== null) break;
    }
    assert.deepEqual([found, generation.stopReason, generation.stopString], [wanted, reason, which]);
    await session.close();
  }
  const session = await model.createSession();
  assert.throws(() => session.generate(tokenizer, [1], { stopStrings: 'abc' }), TypeError);
  assert.throws(() => session.generate(tokenizer, [1], { stopStrings: [''] }), code('ARGUMENT'));
  await session.close();
});

test('a generation yields text and stops', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const session = await model.createSession();
  const prompt = await tokenizer.encode('the');
  const settings = { temperature: 1.2, seed: 3, maxTokens: 40, stopTokens: [] };
  const generation = session.generate(tokenizer, prompt, settings);
  const { text, tokens } = await collect(generation);
  assert.equal(tokens.length, 40);
  assert.equal(generation.stopReason, 'length');
  assert.equal(generation.closed, true);
  assert.equal(tokenizer.decode(tokens).trimStart(), text.trimStart());
  assert.deepEqual(await generation.next(), { done: true, value: undefined });

  session.rewind(0);
  const sampler = Sampler.create(512, { temperature: 1.2, seed: 3 });
  const pulled = session.generate(tokenizer, prompt, { sampler, maxTokens: 40, stopTokens: [] });
  const results = await Promise.all(Array.from({ length: 41 }, () => pulled.next()));
  assert.deepEqual(results.slice(0, 40).map((result) => result.value.token), tokens);
  assert.equal(results[40].done, true);
  await Promise.all([sampler.close(), session.close()]);

  const full = await model.createSession({ contextLength: 12 });
  const last = full.generate(tokenizer, prompt, { stopTokens: [] });
  await collect(last);
  assert.equal(last.stopReason, 'context');
  assert.throws(() => full.generate(tokenizer, new Int32Array(13)), code('CONTEXT'));
  full.rewind(0);
  assert.throws(() => full.generate(tokenizer, []), code('STATE'));
  await full.close();
});

test('forced tokens, stop tokens and breaks', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const session = await model.createSession();
  const generation = session.generate(tokenizer, [1, 70], { stopTokens: [7] });
  const pieces = [];
  for await (const piece of generation) {
    pieces.push(piece);
    if (pieces.length === 2) generation.force(7);
  }
  assert.deepEqual(pieces.at(-1), { token: 7, text: '', stopReason: 'token' });
  assert.equal(pieces.length, 3);
  const broken = session.generate(tokenizer, [5], { stopTokens: [] });
  for await (const piece of broken) {
    assert.equal(piece.stopReason, null);
    break;
  }
  assert.equal(broken.closed, true);
  assert.deepEqual(await broken.next(), { done: true, value: undefined });
  await session.close();
});

test('long pieces fit', async (t) => {
  const long = 'long '.repeat(1000);
  const pieces = smallPieces.map((piece) => (piece === 'é' ? long : piece));
  const { model } = await smallWorld(t);
  const tokenizer = await Tokenizer.fromBytes(tokenizerFile(pieces), 512);
  const session = await model.createSession();
  const generation = session.generate(tokenizer, [1], { maxTokens: 3 });
  generation.force(pieces.indexOf(long));
  assert.equal((await generation.next()).value.text, long);
  assert.equal((await generation.next()).done, false);
  await Promise.all([generation, session, tokenizer].map((handle) => handle.close()));
});

test('signals end in AbortError and lose nothing', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const aborted = AbortSignal.abort('enough');
  const isAbort = (error) => {
    assert.ok(error instanceof AbortError);
    assert.deepEqual([error.name, error.code, error.cause], ['AbortError', 'ABORT_ERR', 'enough']);
    return true;
  };
  await assert.rejects(Model.fromBytes(smallCheckpoint, { signal: aborted }), isAbort);
  await assert.rejects(model.createSession({ signal: aborted }), isAbort);
  const session = await model.createSession();
  await assert.rejects(session.append([1], { signal: aborted }), isAbort);
  assert.throws(() => session.generate(tokenizer, [1], { signal: aborted }), isAbort);
  const controller = new AbortController();
  const generation = session.generate(tokenizer, [1, 5], { signal: controller.signal, stopTokens: [], maxTokens: 30 });
  const pieces = [];
  await assert.rejects(async () => {
    for await (const piece of generation) {
      pieces.push(piece);
      if (pieces.length === 5) controller.abort('enough');
    }
  }, isAbort);
  assert.equal(pieces.length, 5);
  await generation.close();
  assert.ok(session instanceof Session);
  await session.close();
});

test('an abort reaches work that waits for a thread, a lock or an end', async (t) => {
  const { model } = await smallWorld(t);
  const session = await model.createSession();
  assert.equal(maxWorkers(), 2);
  const controller = new AbortController();
  const { signal } = controller;
  const work = Array.from({ length: 30 }, () => session.append(new Int32Array(8), { signal }));
  const settled = Promise.allSettled(work);
  await work[0];
  controller.abort();
  const results = await settled;
  const fulfilled = results.filter((result) => result.status === 'fulfilled').length;
  assert.ok(fulfilled < 30);
  for (const result of results) if (result.status === 'rejected') assert.equal(result.reason.name, 'AbortError');
  assert.equal(session.position, 8 * fulfilled);
  await session.append([1]);
  await session.close();
});
