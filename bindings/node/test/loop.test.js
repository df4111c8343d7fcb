// The event loop keeps turning, and the pool keeps threads for others, while the library works.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { test } from 'node:test';
import { Model, maxWorkers } from 'proofinfer';
import { largeModel, largeShape, smallWorld, temporaryFolder } from './support.js';

/** How often a 5 ms timer fired while work ran, and its longest pause. */
async function ticks(work) {
  const begin = performance.now();
  let [count, last, pause] = [0, begin, 0];
  const tick = () => {
    const now = performance.now();
    pause = Math.max(pause, now - last);
    [count, last] = [count + 1, now];
  };
  const timer = setInterval(tick, 5);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  const length = performance.now() - begin;
  tick();
  return { count, pause, length };
}

/** A busy machine takes the processor away for a while; a blocked loop is one pause as long as the work. */
function expectTicks(t, what, { count, pause, length }) {
  t.diagnostic(`${what}: ${length.toFixed(0)} ms, ${count} ticks of a 5 ms timer, longest pause ${pause.toFixed(1)} ms`);
  assert.ok(pause < Math.max(50, length / 4), `${what}: the loop stood still for ${pause} of ${length} ms`);
  assert.ok(count > length / 50, `${what}: ${count} ticks in ${length} ms`);
}

const folder = temporaryFolder();
let path;

test('a 5 ms timer ticks during load and prefill of a large model', async (t) => {
  path = largeModel(folder);
  let model;
  expectTicks(t, 'load', await ticks(async () => (model = await Model.open(path))));
  const session = await model.createSession();
  expectTicks(t, 'prefill', await ticks(() => session.append(new Int32Array(200))));
  const closing = await ticks(() => Promise.all([session.close(), model.close()]));
  assert.ok(closing.pause < 50, `close: the loop stood still for ${closing.pause} ms`);
});

test('a signal stops load and prefill of a large model promptly', async (t) => {
  const late = async (what, after, work) => {
    const controller = new AbortController();
    let at;
    setTimeout(() => {
      at = performance.now();
      controller.abort();
    }, after);
    await assert.rejects(work(controller.signal), { name: 'AbortError', code: 'ABORT_ERR' });
    const took = performance.now() - at;
    t.diagnostic(`${what} stopped ${took.toFixed(1)} ms after the abort`);
    assert.ok(took < 1500);
  };
  await late('load', 5, (signal) => Model.open(path, { signal }));
  const model = await Model.open(path);
  const session = await model.createSession({ contextLength: largeShape.seq_len });
  await late('prefill', 100, (signal) => session.append(new Int32Array(largeShape.seq_len), { signal }));
  assert.equal(session.position, 0);
  await Promise.all([session.close(), model.close()]);
});

test('the library takes two threads of the pool at most', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  assert.equal(maxWorkers(), 2);
  let running = true;
  const sessions = await Promise.all(Array.from({ length: 8 }, () => model.createSession()));
  const work = sessions.map(async (session) => {
    while (running) {
      for await (const piece of session.generate(tokenizer, [1], { maxTokens: 100, stopTokens: [] })) if (!running || !piece) break;
      session.rewind(0);
    }
  });
  // Files go through the same pool of four threads.
  const times = [];
  for (let i = 0; i < 200; i++) {
    const begin = performance.now();
    await stat(folder);
    times.push(performance.now() - begin);
  }
  running = false;
  await Promise.all(work);
  times.sort((a, b) => a - b);
  t.diagnostic(`stat beside 8 generations: median ${times[100].toFixed(2)} ms, longest ${times[199].toFixed(2)} ms`);
  assert.ok(times[100] < 20);
  await Promise.all(sessions.map((session) => session.close()));
});
