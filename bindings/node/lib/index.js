// Runs Llama-family language models on a CPU with libproofinfer. See README.md and index.d.ts.
export { AbortError, ClosedError, LibraryError, ProofinferError } from './errors.js';
export { build, kernelSets, loadLibrary, version } from './native.js';
export { options } from './options.js';
export { maxWorkers, setMaxWorkers } from './work.js';
export { Model } from './model.js';
export { Stream, Tokenizer } from './tokenizer.js';
export { chatStopTokens, chatTemplate, chatTemplates, encodeChat } from './chat.js';
export { perplexity } from './score.js';
export { Session } from './session.js';
export { Batch } from './batch.js';
export { Sampler, logprobs, topLogprobs } from './sampler.js';
export { Generation } from './generation.js';
export { Job, Scheduler } from './scheduler.js';
import { pathBytes } from './model.js';
import { INT32, integer } from './options.js';
import { run } from './work.js';

const FORMATS = ['legacy', 'version 1', 'version 2', 'packed'];

/** Writes the checkpoint at a path to another path in another format: 'legacy', 'version 1', 'version 2' or 'packed'. */
export async function convert(from, to, format, { groupSize = 0, signal } = {}) {
  const [source, target] = [pathBytes(from), pathBytes(to)];
  if (!FORMATS.includes(format)) throw new TypeError(`format: expected ${FORMATS.join(', ')}, found ${format}`);
  const parameters = [source, source.length, target, target.length, FORMATS.indexOf(format), Number(integer('groupSize', groupSize, ...INT32))];
  await run('convert', { signal }, (cancel) => [...parameters, cancel]);
}

/** Runs the library's built-in model on every kernel set of this CPU and compares it with built-in figures, in milliseconds. */
export async function selfTest() {
  await run('selftest', {}, () => []);
}
