import { Owner, expect, own, pointerOf } from './handle.js';
import { Model, pathBytes } from './model.js';
import { bytesOf, call, create, native } from './native.js';
import { INT32, bytes, integer, tokenArray, withOptions } from './options.js';
import { run } from './work.js';

export function tokenId(name, value) {
  return Number(integer(name, value, ...INT32));
}

export function textBytes(text) {
  if (typeof text === 'string') return Buffer.from(text);
  if (text instanceof Uint8Array) return text;
  throw new TypeError(`text: expected a string or a Uint8Array, found ${typeof text}`);
}

/** A model or a number of pieces. */
function vocabSizeOf(value) {
  return value instanceof Model ? value.vocabSize : tokenId('vocabSize', value);
}

const IDS = ['bos', 'eos', 'eot', 'eom', 'unknown', 'padding'];
const FLAGS = ['addBos', 'addEos', 'addSpacePrefix'];
const TEXTS = ['model', 'preTokenizer'];
const KINDS = [undefined, 'normal', 'unknown', 'control', 'user-defined', 'unused', 'byte'];
const [BOS, EOS, SPECIAL] = [1, 2, 4];

function readInfo(pointer) {
  const info = {};
  const value = new BigInt64Array(1);
  [...IDS, ...FLAGS].forEach((name, i) => {
    call('tokenizer_get_i64', pointer, i + 1, value);
    info[name] = Number(value[0]);
  });
  FLAGS.forEach((name) => (info[name] = info[name] === 1));
  TEXTS.forEach((name, i) => (info[name] = native().tokenizer_get_text(pointer, i + 1)));
  return Object.freeze(info);
}

/** Vocabulary: immutable, shared. */
export class Tokenizer extends Owner {
  /** What the tokenizer says of itself; stays after close. */
  info;
  #vocabSize;
  constructor(key, what, pointer) {
    super(key, what, pointer);
    this.#vocabSize = native().tokenizer_vocab_size(pointer);
    this.info = readInfo(pointer);
  }

  /** Opens a GGUF file's tokenizer or a tokenizer.bin. vocabSize: how many pieces to read, or the model that it is for. */
  static async open(path, vocabSize = 0, options = {}) {
    return Tokenizer.#open('tokenizer_open', pathBytes(path), vocabSize, options);
  }

  /** The same from memory, which must stay as it is until the promise settles; nothing of it is kept. */
  static async fromBytes(data, vocabSize = 0, options = {}) {
    return Tokenizer.#open('tokenizer_open_memory', bytes('data', data), vocabSize, options);
  }

  static #open(name, source, vocabSize, options) {
    const count = vocabSizeOf(vocabSize);
    const out = new BigUint64Array(1);
    return withOptions(options, ['signal'], async (settings) => {
      await run(name, options, () => [source, source.length, count, settings, out]);
      return own(Tokenizer, 'tokenizer', out[0]);
    });
  }

  get vocabSize() {
    return this.#vocabSize;
  }

  get bos() {
    return this.info.bos;
  }

  get eos() {
    return this.info.eos;
  }

  #flags({ bos = this.info.addBos, eos = this.info.addEos, special = false }) {
    return (bos ? BOS : 0) | (eos ? EOS : 0) | (special ? SPECIAL : 0);
  }

  /** Text to token ids, on a pool thread. */
  async encode(text, options = {}) {
    const handle = expect(this, Tokenizer);
    const source = textBytes(text);
    // The library promises that these are enough.
    const tokens = new Int32Array(2 * source.length + 3);
    const needed = new BigUint64Array(1);
    await run('tokenizer_encode', { uses: [handle], signal: options.signal }, () => [
      handle.pointerInUse, source, source.length, this.#flags(options), tokens, tokens.length, needed,
    ]);
    return tokens.slice(0, Number(needed[0]));
  }

  /** The same at once, for short texts. */
  encodeSync(text, options = {}) {
    const pointer = pointerOf(this, Tokenizer);
    const source = textBytes(text);
    const tokens = new Int32Array(2 * source.length + 3);
    const needed = new BigUint64Array(1);
    call('tokenizer_encode', pointer, source, source.length, this.#flags(options), tokens, tokens.length, needed);
    return tokens.slice(0, Number(needed[0]));
  }

  /** Token ids to text. A BOS that begins them gives none, so that decoding what encode made gives the text again. */
  decode(tokens) {
    const ids = tokenArray(tokens);
    const begins = ids.length > 0 && ids[0] === this.bos;
    const stream = this.createStream(begins ? ids[0] : undefined);
    try {
      let text = '';
      for (const id of begins ? ids.subarray(1) : ids) text += stream.push(id);
      return text + stream.flush();
    } finally {
      stream.close();
    }
  }

  /** The bytes of one id; they may be part of a character. previous: the id before it. spelled: the piece itself, "<0x0A>". */
  decodeToken(token, { previous = -1, spelled = false } = {}) {
    const parameters = [pointerOf(this, Tokenizer), tokenId('previous', previous), tokenId('token', token), spelled ? 1 : 0];
    return Uint8Array.from(bytesOf('tokenizer_decode', parameters));
  }

  /** The piece of an id: what it is in a text, its score and its kind. */
  piece(token) {
    const [score, kind] = [new Float32Array(1), new Int32Array(1)];
    const id = tokenId('token', token);
    const piece = bytesOf('tokenizer_piece', [pointerOf(this, Tokenizer), id], [score]);
    call('tokenizer_piece_kind', pointerOf(this, Tokenizer), id, kind);
    return { bytes: Uint8Array.from(piece), score: score[0], kind: KINDS[kind[0]] };
  }

  /** A stream that turns ids into whole characters as they come. previous: the id before the first one. */
  createStream(previous = -1) {
    return own(Stream, 'stream', create('stream_create', pointerOf(this, Tokenizer), tokenId('previous', previous)));
  }
}

/** Token ids to whole UTF-8 characters. */
export class Stream extends Owner {
  /** The text that this id completes; may be empty. */
  push(token) {
    return bytesOf('stream_push', [pointerOf(this, Stream), tokenId('token', token)]).toString();
  }

  /** What is held back: nothing, or U+FFFD for an incomplete character. */
  flush() {
    return bytesOf('stream_flush', [pointerOf(this, Stream)]).toString();
  }
}
