// Finds, loads and declares the C library. Pointers are BigInts; typed arrays go in place of pointers to their elements.
import koffi from 'koffi';
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LibraryError, ProofinferError } from './errors.js';

/** The major version that this package was written for. */
const MAJOR = 1;
const VARIABLE = 'PROOFINFER_LIBRARY';
const FILE = { darwin: `libproofinfer.${MAJOR}.dylib`, win32: 'proofinfer.dll' }[process.platform] ?? `libproofinfer.so.${MAJOR}`;

// result and parameters of each function; the trailing error pointer included.
const P = 'void *';
const SIGNATURES = {
  version_number: ['int32', []],
  version_text: ['str', []],
  build_text: ['str', []],
  status_name: ['str', ['int32']],
  error_code: ['int32', [P]],
  error_message: ['str', [P]],
  error_free: ['void', [P]],
  options_create: ['int32', [P, P]],
  options_free: ['void', [P]],
  options_set_i64: ['int32', [P, P, 'size_t', 'int64', P]],
  options_set_u64: ['int32', [P, P, 'size_t', 'uint64', P]],
  options_set_f64: ['int32', [P, P, 'size_t', 'double', P]],
  options_set_text: ['int32', [P, P, 'size_t', P, 'size_t', P]],
  options_set_tokens: ['int32', [P, P, 'size_t', P, 'size_t', P]],
  options_set_texts: ['int32', [P, P, 'size_t', P, P, 'size_t', P]],
  option_count: ['size_t', []],
  option_name: ['str', ['size_t']],
  option_type: ['int32', ['size_t']],
  option_default: ['str', ['size_t']],
  option_lowest: ['str', ['size_t']],
  option_highest: ['str', ['size_t']],
  option_scope: ['str', ['size_t']],
  cancel_create: ['int32', [P, P]],
  cancel_request: ['void', [P]],
  cancel_reset: ['void', [P]],
  cancel_progress: ['void', [P, P, P]],
  cancel_free: ['void', [P]],
  isa_count: ['size_t', []],
  isa_name: ['str', ['size_t']],
  isa_available: ['int32', ['size_t']],
  selftest: ['int32', [P]],
  model_open: ['int32', [P, 'size_t', P, P, P, P]],
  model_open_memory: ['int32', [P, 'size_t', P, P, P, P]],
  model_free: ['void', [P]],
  model_get_i64: ['int32', [P, 'int32', P, P]],
  model_get_text: ['str', [P, 'int32']],
  model_tensor_count: ['size_t', [P]],
  model_tensor_name: ['int32', [P, 'size_t', P, 'size_t', P, P]],
  model_tensor_get_i64: ['int32', [P, 'size_t', 'int32', P, P]],
  model_tensor_type: ['str', [P, 'size_t']],
  model_metadata_count: ['size_t', [P]],
  model_metadata_key: ['int32', [P, 'size_t', P, 'size_t', P, P]],
  model_metadata_text: ['int32', [P, 'size_t', P, 'size_t', P, P]],
  convert: ['int32', [P, 'size_t', P, 'size_t', 'int32', 'int32', P, P]],
  tokenizer_open: ['int32', [P, 'size_t', 'int32', P, P, P]],
  tokenizer_open_memory: ['int32', [P, 'size_t', 'int32', P, P, P]],
  tokenizer_free: ['void', [P]],
  tokenizer_vocab_size: ['int32', [P]],
  tokenizer_bos: ['int32', [P]],
  tokenizer_eos: ['int32', [P]],
  tokenizer_get_i64: ['int32', [P, 'int32', P, P]],
  tokenizer_get_text: ['str', [P, 'int32']],
  tokenizer_piece: ['int32', [P, 'int32', P, 'size_t', P, P, P]],
  tokenizer_piece_kind: ['int32', [P, 'int32', P, P]],
  tokenizer_encode: ['int32', [P, P, 'size_t', 'uint32', P, 'size_t', P, P]],
  tokenizer_decode: ['int32', [P, 'int32', 'int32', 'uint32', P, 'size_t', P, P]],
  chat_template_count: ['size_t', []],
  chat_template_name: ['str', ['size_t']],
  chat_template: ['str', [P]],
  chat_encode: ['int32', [P, P, 'size_t', P, P, P, 'size_t', 'uint32', P, 'size_t', P, P]],
  chat_stop_tokens: ['int32', [P, P, 'size_t', P, 'size_t', P, P]],
  stream_create: ['int32', [P, 'int32', P, P]],
  stream_push: ['int32', [P, 'int32', P, 'size_t', P, P]],
  stream_flush: ['int32', [P, P, 'size_t', P, P]],
  stream_free: ['void', [P]],
  session_create: ['int32', [P, P, P, P]],
  session_clone: ['int32', [P, P, P, P]],
  session_save: ['int32', [P, P, 'size_t', P, P]],
  session_restore: ['int32', [P, P, 'size_t', P]],
  session_free: ['void', [P]],
  session_append: ['int32', [P, P, 'size_t', 'int32', P, P]],
  session_score: ['int32', [P, P, 'size_t', P, P, P]],
  model_score: ['int32', [P, P, P, 'size_t', P, P, P, P]],
  session_logits: ['int32', [P, 'size_t', P, 'size_t', P, P]],
  session_position: ['size_t', [P]],
  session_context_length: ['size_t', [P]],
  session_tokens: ['int32', [P, P, 'size_t', P, P]],
  session_rewind: ['int32', [P, 'size_t', P]],
  session_memory_bytes: ['uint64', [P]],
  batch_create: ['int32', [P, 'size_t', P, P, P]],
  batch_add: ['int32', [P, P, 'int32', 'int32', P]],
  batch_evaluate: ['int32', [P, P, P]],
  batch_clear: ['int32', [P, P]],
  batch_free: ['void', [P]],
  sampler_create: ['int32', ['int32', P, P, P]],
  sampler_sample: ['int32', [P, P, 'size_t', P, P]],
  sampler_accept: ['int32', [P, P, 'size_t', P]],
  sampler_set_bias: ['int32', [P, P, P, 'size_t', P]],
  sampler_set_banned: ['int32', [P, P, 'size_t', P]],
  sampler_set_mask: ['int32', [P, P, 'size_t', P]],
  sampler_reseed: ['int32', [P, 'uint64', P]],
  sampler_free: ['void', [P]],
  logits_logprobs: ['int32', [P, 'size_t', P, 'size_t', P, P]],
  logits_top: ['int32', [P, 'size_t', 'size_t', P, P, P]],
  generation_create: ['int32', [P, P, P, P, 'size_t', P, P, P]],
  generation_next: ['int32', [P, P, P, P, 'size_t', P, P, P]],
  generation_logprobs: ['int32', [P, P, P, P, 'size_t', P, P]],
  generation_stop_string: ['int32', [P, P, P]],
  generation_force: ['int32', [P, 'int32', P]],
  generation_free: ['void', [P]],
  scheduler_create: ['int32', [P, P, P, P, P]],
  scheduler_submit: ['int32', [P, P, 'size_t', P, P, P]],
  scheduler_add: ['int32', [P, P, P, P]],
  scheduler_cancel: ['int32', [P, 'uint64', P]],
  scheduler_step: ['int32', [P, P, P, P]],
  scheduler_next: ['int32', [P, 'uint64', P, P, P, 'size_t', P, P, P]],
  scheduler_count: ['size_t', [P]],
  scheduler_memory_bytes: ['uint64', [P]],
  scheduler_free: ['void', [P]],
};

export const OK = 0;
export const E_CANCELLED = 11;
export const E_BUFFER = 12;

let loaded; // { path, functions }

/** [what to call it, what to load]: the places to look at, in order. */
function* candidates(explicit) {
  if (explicit !== undefined) {
    yield ['the path that was given', explicit];
  } else if (process.env[VARIABLE]) {
    yield [`the environment variable ${VARIABLE}`, process.env[VARIABLE]];
  } else {
    const here = dirname(fileURLToPath(import.meta.url));
    yield ["the package's own copy", join(here, '..', 'native', `${process.platform}-${process.arch}`, FILE)];
    yield ["the system's libraries", FILE];
  }
}

/** The library at a place, or a reason why not. */
function tryToLoad(place) {
  const path = place.includes(sep) && !isAbsolute(place) ? resolve(place) : place;
  if (isAbsolute(path) && !existsSync(path)) return { reason: 'no such file' };
  try {
    return { path, library: koffi.load(path) };
  } catch (error) {
    return { reason: error.message };
  }
}

function versionText(number) {
  return `${Math.floor(number / 1e6)}.${Math.floor(number / 1e3) % 1e3}.${number % 1e3}`;
}

/** Throws unless the library's major version is this package's. Exported for the tests. */
export function checkVersion(number, place) {
  if (Math.floor(number / 1e6) === MAJOR) return;
  throw new LibraryError(
    `${place} is libproofinfer ${versionText(number)}, and this package needs version ${MAJOR}.x: ` +
      'install matching versions of the two',
  );
}

function declare(library, place) {
  const functions = {};
  for (const [name, [result, parameters]] of Object.entries(SIGNATURES)) {
    try {
      functions[name] = library.func(`proofinfer_${name}`, result, parameters);
    } catch {
      throw new LibraryError(`${place} has no function proofinfer_${name}: it is no libproofinfer ${MAJOR}.x`);
    }
    if (name === 'version_number') checkVersion(functions.version_number(), place);
  }
  return functions;
}

function load(explicit) {
  if (!['x64', 'arm64', 'riscv64', 'ppc64', 'loong64', 's390x'].includes(process.arch))
    throw new LibraryError(`this package needs a 64-bit system, and this is ${process.arch}`);
  const tried = [];
  for (const [what, place] of candidates(explicit)) {
    const { path, library, reason } = tryToLoad(place);
    if (library) return { path, functions: declare(library, place) };
    tried.push(`${what}, ${place}: ${reason}`);
  }
  throw new LibraryError(`libproofinfer cannot be loaded. Tried: ${tried.join('; ')}`);
}

/**
 * Loads the library now and gives its path; otherwise the first use does. A path that is given, or named by PROOFINFER_LIBRARY, is the only
 * one that is tried. A process has one library: another path after the first is an error.
 */
export function loadLibrary(path) {
  if (path !== undefined && typeof path !== 'string') throw new TypeError(`path: expected a string, found ${typeof path}`);
  if (loaded && path !== undefined && resolve(path) !== resolve(loaded.path))
    throw new LibraryError(`${loaded.path} is loaded already, and a process has one library; asked for ${path}`);
  loaded ??= load(path);
  return loaded.path;
}

/** The C functions, without the prefix proofinfer_. */
export function native() {
  loaded ??= load(undefined);
  return loaded.functions;
}

/** The exception for a status and its error object, which is freed. */
export function failure(status, slot) {
  const f = native();
  const message = f.error_message(slot[0]);
  f.error_free(slot[0]);
  return new ProofinferError(f.status_name(status), message, status);
}

/** Calls a function that ends quickly; throws for any status but OK. */
export function call(name, ...parameters) {
  const slot = new BigUint64Array(1);
  const status = native()[name](...parameters, slot);
  if (status !== OK) throw failure(status, slot);
}

/** Calls a function that writes its result to the parameter before the error, a handle. */
export function create(name, ...parameters) {
  const out = new BigUint64Array(1);
  call(name, ...parameters, out);
  return out[0];
}

/** Calls a function that ends with (buffer, capacity, *needed, extra..., **error) and gives the bytes; once more if they are many. */
export function bytesOf(name, parameters, extra = []) {
  let buffer = Buffer.allocUnsafeSlow(64);
  for (;;) {
    const slot = new BigUint64Array(1);
    const needed = new BigUint64Array(1);
    const status = native()[name](...parameters, buffer, buffer.length, needed, ...extra, slot);
    if (status === OK) return buffer.subarray(0, Number(needed[0]));
    const error = failure(status, slot);
    if (status !== E_BUFFER) throw error;
    buffer = Buffer.allocUnsafeSlow(Number(needed[0]));
  }
}

/** The library's version, for example "1.0.0". */
export function version() {
  return native().version_text();
}

/** How the library was built. */
export function build() {
  return native().build_text();
}

/** The kernel sets of the library, slowest first: { name, available }. All give the same bits. */
export function kernelSets() {
  const f = native();
  return Array.from({ length: Number(f.isa_count()) }, (_, i) => ({ name: f.isa_name(i), available: f.isa_available(i) === 1 }));
}
