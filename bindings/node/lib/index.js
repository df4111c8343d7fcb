// Runs Llama-family language models on a CPU with libproofinfer. See README.md and index.d.ts.
export { AbortError, ClosedError, LibraryError, ProofinferError } from './errors.js';
export { build, kernelSets, loadLibrary, version } from './native.js';
export { options } from './options.js';
export { maxWorkers, setMaxWorkers } from './work.js';
export { Model } from './model.js';
export { Stream, Tokenizer } from './tokenizer.js';
export { Session } from './session.js';
export { Batch } from './batch.js';
export { Sampler } from './sampler.js';
export { Generation } from './generation.js';
import { run } from './work.js';

/** Runs the library's built-in model on every kernel set of this CPU and compares it with built-in figures, in milliseconds. */
export async function selfTest() {
  await run('selftest', {}, () => []);
}
