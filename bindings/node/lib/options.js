// JavaScript options to the library's options objects.
import { call, create, native } from './native.js';

// name in JavaScript -> [name in C, how it is set]
const NAMES = {
  threads: ['threads', 'i64'],
  map: ['map', 'flag'],
  verify: ['verify', 'flag'],
  isa: ['isa', 'text'],
  memoryLimit: ['memory_limit_bytes', 'u64'],
  shareFromBytes: ['share_from_bytes', 'u64'],
  contextLength: ['context_length', 'i64'],
  temperature: ['temperature', 'f64'],
  topP: ['top_p', 'f64'],
  topK: ['top_k', 'i64'],
  typicalP: ['typical_p', 'f64'],
  minP: ['min_p', 'f64'],
  repetitionPenalty: ['repetition_penalty', 'f64'],
  frequencyPenalty: ['frequency_penalty', 'f64'],
  presencePenalty: ['presence_penalty', 'f64'],
  penaltyWindow: ['penalty_window', 'i64'],
  seed: ['seed', 'u64'],
  maxGenerations: ['max_generations', 'i64'],
  prefillChunk: ['prefill_chunk', 'i64'],
  maxTokens: ['max_tokens', 'i64'],
  stopTokens: ['stop_tokens', 'tokens'],
  stopStrings: ['stop_strings', 'texts'],
  logprobs: ['logprobs', 'i64'],
};

const TYPES = [undefined, 'integer', 'unsigned integer', 'number', 'string', 'tokens', 'strings'];

/** What the library can be told: name, type, default, bounds and scope of each option. */
export function options() {
  const f = native();
  return Array.from({ length: Number(f.option_count()) }, (_, i) => ({
    name: Object.keys(NAMES).find((name) => NAMES[name][0] === f.option_name(i)) ?? f.option_name(i),
    type: TYPES[f.option_type(i)],
    default: f.option_default(i),
    lowest: f.option_lowest(i),
    highest: f.option_highest(i),
    scope: f.option_scope(i).split(','),
  }));
}

/** A whole number that C can hold, as a BigInt. */
export function integer(name, value, lowest, highest) {
  if (typeof value !== 'bigint' && !Number.isSafeInteger(value))
    throw new TypeError(`${name}: expected a whole number, found ${typeof value === 'number' ? value : typeof value}`);
  if (value < lowest || value > highest) throw new RangeError(`${name}: expected ${lowest} to ${highest}, found ${value}`);
  return BigInt(value);
}

export const INT32 = [-(2 ** 31), 2 ** 31 - 1];
const INT64 = [-(2n ** 63n), 2n ** 63n - 1n];
const UINT64 = [0n, 2n ** 64n - 1n];

/** Token ids as an Int32Array of our own. */
export function tokenArray(tokens) {
  if (tokens instanceof Int32Array) return tokens.slice();
  if (tokens === null || typeof tokens !== 'object' || typeof tokens[Symbol.iterator] !== 'function')
    throw new TypeError('tokens: expected an array of token ids');
  return Int32Array.from(Array.from(tokens), (token, i) => Number(integer(`tokens[${i}]`, token, ...INT32)));
}

/** Bytes for the library to read: a view of them, not a copy. */
export function bytes(name, data) {
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new TypeError(`${name}: expected a Uint8Array or an ArrayBuffer, found ${typeof data}`);
}

/** A position or a size, as a number. */
export function size(name, value) {
  return Number(integer(name, value, 0, Number.MAX_SAFE_INTEGER));
}

const setters = {
  i64: (name, value) => [integer(name, value, ...INT64)],
  u64: (name, value) => [integer(name, value, ...UINT64)],
  flag(name, value) {
    if (typeof value !== 'boolean') throw new TypeError(`${name}: expected a boolean, found ${typeof value}`);
    return [BigInt(value)];
  },
  f64(name, value) {
    if (typeof value !== 'number') throw new TypeError(`${name}: expected a number, found ${typeof value}`);
    return [value];
  },
  text(name, value) {
    if (typeof value !== 'string') throw new TypeError(`${name}: expected a string, found ${typeof value}`);
    const bytes = Buffer.from(value);
    return [bytes, bytes.length];
  },
  tokens(name, value) {
    const tokens = tokenArray(value);
    return [tokens, tokens.length];
  },
  texts(name, value) {
    if (!Array.isArray(value) || value.some((text) => typeof text !== 'string' && !(text instanceof Uint8Array)))
      throw new TypeError(`${name}: expected an array of strings and Uint8Arrays`);
    const texts = value.map((text) => Buffer.from(text));
    return [Buffer.concat(texts), BigUint64Array.from(texts, (text) => BigInt(text.length)), texts.length];
  },
};

function set(settings, name, value) {
  const [cName, how] = NAMES[name];
  const bytes = Buffer.from(cName);
  call(`options_set_${how === 'flag' ? 'i64' : how}`, settings, bytes, bytes.length, ...setters[how](name, value));
}

/** Runs use(settings) with an options object that lives until use ends, or its promise does. others: further names that are ours. */
export function withOptions(given, others, use) {
  if (given === null || typeof given !== 'object') throw new TypeError(`options: expected an object, found ${typeof given}`);
  const names = Object.keys(given).filter((name) => given[name] !== undefined && !others.includes(name));
  const unknown = names.find((name) => !Object.hasOwn(NAMES, name));
  if (unknown !== undefined)
    throw new TypeError(`options: there is no ${unknown}; there are ${[...Object.keys(NAMES), ...others].join(', ')}`);
  if (names.length === 0) return use(null);
  const settings = create('options_create');
  const release = () => native().options_free(settings);
  let result;
  try {
    for (const name of names) set(settings, name, given[name]);
    result = use(settings);
  } catch (error) {
    release();
    throw error;
  }
  if (!(result instanceof Promise)) {
    release();
    return result;
  }
  return result.finally(release);
}
