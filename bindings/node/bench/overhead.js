// What the package adds to a token of the same loop in C, on stories260K: node bench/overhead.js [LIMIT_IN_MICROSECONDS]. Needs a C compiler.
// The fastest of many interleaved rounds that fit a scheduler's time slice, so that other work on the machine does not count.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import koffi from 'koffi';
import { Model, Tokenizer, loadLibrary } from '../lib/index.js';
import { pointerOf } from '../lib/handle.js';
import { Generation } from '../lib/generation.js';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.env.PROOFINFER_MODELS ?? join(here, '..', '..', '..', '..', 'shared', 'models');
const [steps, rounds, target] = [48, 200, 60];
const limit = Number(process.argv[2] ?? target);

if (!existsSync(join(folder, 'stories260K.bin'))) {
  console.log(`SKIPPED[real-models]: no stories260K.bin in ${folder}`);
  process.exit(0);
}

const scratch = mkdtempSync(join(tmpdir(), 'proofinfer-'));
execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', join(scratch, 'loop.so'), join(here, 'loop.c')]);
const loop = koffi.load(join(scratch, 'loop.so')).func('loop_run', 'int64', ['void *', 'void *', 'int32']);
rmSync(scratch, { recursive: true });
const next = koffi.load(loadLibrary()).symbol('proofinfer_generation_next');

const model = await Model.open(join(folder, 'stories260K.bin'));
const tokenizer = await Tokenizer.open(join(folder, 'tok512.bin'), model);

async function timed(run) {
  const session = await model.createSession();
  const generation = session.generate(tokenizer, [tokenizer.bos]);
  const took = await run(generation);
  await Promise.all([generation.close(), session.close()]);
  return took;
}

async function iterate(generation) {
  const begin = process.hrtime.bigint();
  let left = steps;
  for await (const piece of generation) if (--left === 0 || piece.stopReason) break;
  return Number(process.hrtime.bigint() - begin);
}

async function pull(generation) {
  const begin = process.hrtime.bigint();
  for (let i = 0; i < steps; i++) await generation.next();
  return Number(process.hrtime.bigint() - begin);
}

const ways = {
  C: (generation) => loop(next, pointerOf(generation, Generation), steps),
  'for await': iterate,
  'next()': pull,
};
const best = {};
for (let round = 0; round < rounds; round++)
  for (const [name, run] of Object.entries(ways)) best[name] = Math.min(best[name] ?? Infinity, await timed(run));
let worst = 0;
for (const [name, took] of Object.entries(best)) {
  const over = (took - best.C) / steps / 1000;
  worst = Math.max(worst, over);
  console.log(`${name.padEnd(10)} ${(took / steps / 1000).toFixed(1)} us a token, ${over.toFixed(1)} us over C (target ${target})`);
}
await Promise.all([model.close(), tokenizer.close()]);
if (worst > limit) {
  console.log(`more than ${limit} us over C`);
  process.exit(1);
}
