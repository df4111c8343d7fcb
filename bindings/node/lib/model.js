import { Owner, own, pointerOf } from './handle.js';
import { bytesOf, call, create, native } from './native.js';
import { bytes, size, withOptions } from './options.js';
import { run } from './work.js';
import { Scheduler } from './scheduler.js';
import { scoreTexts } from './score.js';
import { Session } from './session.js';
import { Batch } from './batch.js';

// Properties in the order of their numbers in the C API, from 1.
const NUMBERS = [
  'dim', 'hiddenDim', 'layers', 'heads', 'kvHeads', 'vocabSize', 'seqLen', 'headSize', 'sharedClassifier', 'groupSize', 'fileBytes',
  'weightBytes', 'memoryBytes', 'parameterCount', 'threads', 'mapped',
];
const TEXTS = ['format', 'elementType', 'isa'];
const TENSOR_NUMBERS = ['rows', 'columns', 'fileOffset', 'fileBytes', 'quantized'];

function number(name, ...parameters) {
  const value = new BigInt64Array(1);
  call(name, ...parameters, value);
  return Number(value[0]);
}

function readInfo(pointer) {
  const info = {};
  NUMBERS.forEach((name, i) => (info[name] = number('model_get_i64', pointer, i + 1)));
  TEXTS.forEach((name, i) => (info[name] = native().model_get_text(pointer, i + 1)));
  info.sharedClassifier = info.sharedClassifier === 1;
  info.mapped = info.mapped === 1;
  return Object.freeze(info);
}

/** A path as the bytes that the library wants. */
export function pathBytes(path) {
  if (typeof path !== 'string') throw new TypeError(`path: expected a string, found ${typeof path}`);
  return Buffer.from(path);
}

/** Weights and shape: immutable, shared by sessions. */
export class Model extends Owner {
  /** What the model says of itself; stays after close. */
  info;
  constructor(key, what, pointer) {
    super(key, what, pointer);
    this.info = readInfo(pointer);
  }

  /** Loads the checkpoint at a path. */
  static async open(path, options = {}) {
    return Model.#open('model_open', pathBytes(path), options);
  }

  /** Loads a checkpoint from memory, which must stay as it is until the promise settles; nothing of it is kept. */
  static async fromBytes(data, options = {}) {
    return Model.#open('model_open_memory', bytes('data', data), options);
  }

  static #open(name, source, options) {
    const out = new BigUint64Array(1);
    return withOptions(options, ['signal'], async (settings) => {
      await run(name, options, (cancel) => [source, source.length, settings, cancel, out]);
      return own(Model, 'model', out[0]);
    });
  }

  get vocabSize() {
    return this.info.vocabSize;
  }

  /** The tensors of the checkpoint in file order. */
  tensors() {
    const pointer = pointerOf(this, Model);
    return Array.from({ length: Number(native().model_tensor_count(pointer)) }, (_, index) => {
      const tensor = { name: bytesOf('model_tensor_name', [pointer, index]).toString() };
      TENSOR_NUMBERS.forEach((name, i) => (tensor[name] = number('model_tensor_get_i64', pointer, index, i + 1)));
      tensor.quantized = tensor.quantized === 1;
      tensor.type = native().model_tensor_type(pointer, index);
      return tensor;
    });
  }

  /** The keys of a GGUF file and their values as text, long ones cut; empty for other formats. */
  metadata() {
    const pointer = pointerOf(this, Model);
    return new Map(
      Array.from({ length: Number(native().model_metadata_count(pointer)) }, (_, index) => [
        bytesOf('model_metadata_key', [pointer, index]).toString(),
        bytesOf('model_metadata_text', [pointer, index]).toString(),
      ])
    );
  }

  /** Makes an empty session; its room is reserved on a pool thread. */
  async createSession(options = {}) {
    return Session.create(this, options);
  }

  /**
   * The logarithms of the probabilities of the tokens of many texts, each behind all before it; NaN for the first of each text. They are evaluated
   * together, several in a pass, with the bits of each alone.
   */
  async score(texts, options = {}) {
    return scoreTexts(this, Model, texts, options);
  }

  /** Makes a scheduler for generations with a tokenizer. */
  createScheduler(tokenizer, options = {}) {
    return Scheduler.create(this, tokenizer, options);
  }

  /** Makes a batch with room for maxRows tokens a pass. */
  createBatch(maxRows, options = {}) {
    const pointer = pointerOf(this, Model);
    const rows = size('maxRows', maxRows);
    return withOptions(options, [], (settings) => own(Batch, 'batch', create('batch_create', pointer, rows, settings)));
  }
}
