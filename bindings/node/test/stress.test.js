// Many promises open, generate, abort and close in random order: 10 s, or 60 s where PROOFINFER_LONG is set.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import koffi from 'koffi';
import { Model, Sampler } from 'proofinfer';
import { smallCheckpoint, smallWorld } from './support.js';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');
const seconds = process.env.PROOFINFER_LONG ? 60 : Number(process.env.PROOFINFER_STRESS_SECONDS ?? 10);

/** Random numbers that repeat: mulberry32. */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function round(shared, random) {
  const below = (n) => Math.floor(random() * n);
  const controller = new AbortController();
  const { signal } = controller;
  const handles = [];
  let { model } = shared;
  if (below(4) === 0) handles.push((model = await Model.fromBytes(smallCheckpoint)));
  if (below(8) === 0) await assert.rejects(Model.fromBytes(smallCheckpoint.subarray(0, below(1000))));
  const session = await model.createSession({ contextLength: 64 });
  const sampler = Sampler.create(512, { temperature: 1, seed: below(2 ** 31) });
  const generation = session.generate(shared.tokenizer, [1, below(512), 5], { sampler, signal, stopTokens: [] });
  handles.push(session, sampler, generation);
  if (below(3) === 0) setTimeout(() => controller.abort(), below(4));
  let steps = below(70);
  try {
    for await (const piece of generation) {
      assert.ok(piece.token === null || piece.token >= 0);
      if (below(200) === 0) generation.close();
      if (--steps < 0) break;
    }
  } catch (error) {
    if (error.name !== 'AbortError' && error.name !== 'ClosedError') throw error;
  }
  const closing = [];
  while (handles.length > 0) {
    const [handle] = handles.splice(below(handles.length), 1);
    // Some are left to the garbage collector.
    if (below(16) !== 0) closing.push(handle.close());
  }
  await Promise.all(closing);
}

// Freed memory that the C library keeps for later, a few megabytes for each thread that ever allocated, would look like a leak.
let trim = () => {};
try {
  trim = koffi.load('libc.so.6').func('malloc_trim', 'int', ['size_t']);
} catch {
  // another C library
}

async function settledMemory() {
  for (let i = 0; i < 5; i++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  trim(0);
  return process.memoryUsage.rss() / 2 ** 20;
}

test(`${seconds} s of random life`, async (t) => {
  const shared = await smallWorld(t);
  let rounds = 0;
  const phase = async (length, seed) => {
    const end = performance.now() + length * 1000;
    await Promise.all(
      Array.from({ length: 16 }, async (_, i) => {
        const random = generator(seed + i);
        for (; performance.now() < end; rounds++) await round(shared, random);
      }),
    );
  };
  await phase(seconds / 3, 1);
  const warm = await settledMemory();
  await phase((seconds * 2) / 3, 100);
  const after = await settledMemory();
  t.diagnostic(`${rounds} rounds, memory ${warm.toFixed(0)} MiB after a third, ${after.toFixed(0)} MiB at the end`);
  assert.ok(rounds > 16);
  // 50 leaked models of the thousands that are opened.
  assert.ok(after < warm + 30, `memory grew from ${warm} to ${after} MiB`);
});
