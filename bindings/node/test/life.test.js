import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ClosedError, Model, ProofinferError, Sampler, Tokenizer } from 'proofinfer';
import { collect, smallCheckpoint, smallTokenizer, smallWorld } from './support.js';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');

const closed = (error) => error instanceof ClosedError && error instanceof ProofinferError && error.code === 'ERR_PROOFINFER_CLOSED';

test('use after close is a ClosedError', async () => {
  const model = await Model.fromBytes(smallCheckpoint);
  const tokenizer = await Tokenizer.fromBytes(smallTokenizer, model);
  const session = await model.createSession();
  const other = await model.createSession();
  const sampler = Sampler.create(512);
  const stream = tokenizer.createStream();
  const batch = model.createBatch(4);
  const generation = session.generate(tokenizer, [1]);
  for (const handle of [model, tokenizer, session, sampler, stream, batch, generation]) {
    const first = handle.close();
    assert.equal(handle.closed, true);
    await Promise.all([first, handle.close(), handle[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]()]);
    handle[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
  }
  const calls = {
    'model.createSession': () => model.createSession(),
    'model.createBatch': () => model.createBatch(1),
    'model.tensors': () => model.tensors(),
    'tokenizer.encode': () => tokenizer.encode('a'),
    'tokenizer.encodeSync': () => tokenizer.encodeSync('a'),
    'tokenizer.decode': () => tokenizer.decode([1]),
    'tokenizer.decodeToken': () => tokenizer.decodeToken(1),
    'tokenizer.piece': () => tokenizer.piece(1),
    'tokenizer.createStream': () => tokenizer.createStream(),
    'stream.push': () => stream.push(1),
    'stream.flush': () => stream.flush(),
    'session.append': () => session.append([1]),
    'session.rewind': () => session.rewind(0),
    'session.logits': () => session.logits(0),
    'session.position': () => session.position,
    'session.tokens': () => session.tokens,
    'session.memoryBytes': () => session.memoryBytes,
    'session.generate': () => session.generate(tokenizer, [1]),
    'generate with a closed tokenizer': () => other.generate(tokenizer, [1]),
    'batch.add': () => batch.add(other, 1),
    'batch.evaluate': () => batch.evaluate(),
    'batch.clear': () => batch.clear(),
    'sampler.sample': () => sampler.sample(new Float32Array(512)),
    'sampler.reseed': () => sampler.reseed(1),
    'generation.next': () => generation.next(),
    'generation.force': () => generation.force(1),
  };
  for (const [name, call] of Object.entries(calls)) await assert.rejects(async () => call(), closed, name);
  assert.equal(model.vocabSize, 512);
  assert.equal(session.contextLength, 256);
  await other.close();
});

test('handles close in every order', async () => {
  const orders = (rest) => (rest.length === 0 ? [[]] : rest.flatMap((x) => orders(rest.filter((y) => y !== x)).map((o) => [x, ...o])));
  const texts = new Set();
  for (const order of orders([0, 1, 2, 3])) {
    const model = await Model.fromBytes(smallCheckpoint);
    const tokenizer = await Tokenizer.fromBytes(smallTokenizer, model);
    const session = await model.createSession();
    const sampler = Sampler.create(512, { temperature: 1 });
    const generation = session.generate(tokenizer, [1, 2], { sampler, maxTokens: 5, stopTokens: [] });
    const handles = [model, tokenizer, session, sampler];
    let text = '';
    for (const i of order) {
      handles[i].close();
      text += (await generation.next()).value.text;
    }
    text += (await collect(generation)).text;
    texts.add(text);
  }
  assert.equal(texts.size, 1);
});

test('close waits for the work in flight', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const session = await model.createSession();
  const order = [];
  const work = session.append(new Int32Array(200)).then(() => order.push('append'));
  const queued = session.append([1, 2]).then(() => order.push('queued'));
  await session.close().then(() => order.push('close'));
  await Promise.all([work, queued]);
  assert.deepEqual(order, ['append', 'queued', 'close']);
  const next = await model.createSession();
  const generation = next.generate(tokenizer, new Int32Array(100), { stopTokens: [] });
  const piece = generation.next().then((result) => order.push(result.done));
  await next.close();
  await generation.close();
  await piece;
  assert.equal(order.at(-1), false);
});

test('forgotten handles are freed', async (t) => {
  const { model } = await smallWorld(t);
  const before = process.memoryUsage.rss();
  for (let i = 0; i < 300; i++) {
    await model.createSession();
    await Model.fromBytes(smallCheckpoint);
    if (i % 10 === 0) gc();
    await new Promise(setImmediate);
  }
  // 300 models and sessions are 270 MB.
  const grown = (process.memoryUsage.rss() - before) / 2 ** 20;
  assert.ok(grown < 100, `grown by ${grown} MiB`);
});

test('10,000 loads, a tenth of them failing, leave memory flat', async () => {
  const rss = [];
  for (let i = 0; i < 10000; i++) {
    const bad = i % 10 === 0;
    const data = bad ? smallCheckpoint.subarray(0, 1000) : smallCheckpoint;
    const opened = Model.fromBytes(data);
    if (bad) await assert.rejects(opened);
    else await (await opened).close();
    if (i === 3000) {
      gc();
      rss.push(process.memoryUsage.rss());
    }
  }
  gc();
  rss.push(process.memoryUsage.rss());
  assert.ok(rss[1] - rss[0] < 30 * 2 ** 20, `memory went from ${rss[0]} to ${rss[1]}`);
});
