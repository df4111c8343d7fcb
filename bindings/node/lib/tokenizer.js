import { Owner, expect, own, pointerOf } from './handle.js';
import { Model, pathBytes } from './model.js';
import { bytesOf, call, create, native } from './native.js';
import { INT32, bytes, integer, tokenArray, withOptions } from './options.js';
import { run } from './work.js';

export function tokenId(name, value) {
  return Number(integer(name, value, ...INT32));
}

function textBytes(text) {
  if (typeof text === 'string') return Buffer.from(text);
  if (text instanceof Uint8Array) return text;
  throw new TypeError(`text: expected a string or a Uint8Array, found ${typeof text}`);
}

/** A model or a number of pieces. */
function vocabSizeOf(value) {
  return value instanceof Model ? value.vocabSize : tokenId('vocabSize', value);
}

/** Vocabulary: immutable, shared. */
export class Tokenizer extends Owner {
  #numbers;
  constructor(key, what, pointer) {
    super(key, what, pointer);
    const f = native();
    this.#numbers = { vocabSize: f.tokenizer_vocab_size(pointer), bos: f.tokenizer_bos(pointer), eos: f.tokenizer_eos(pointer) };
  }

  /** Opens a tokenizer.bin of llama2.c. vocabSize: how many pieces to read, or the model that it is for. */
  static async open(path, vocabSize, options = {}) {
    return Tokenizer.#open('tokenizer_open', pathBytes(path), vocabSize, options);
  }

  /** The same from memory, which must stay as it is until the promise settles; nothing of it is kept. */
  static async fromBytes(data, vocabSize, options = {}) {
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
    return this.#numbers.vocabSize;
  }

  get bos() {
    return this.#numbers.bos;
  }

  get eos() {
    return this.#numbers.eos;
  }

  /** Text to token ids, on a pool thread. */
  async encode(text, { bos = true, eos = false, signal } = {}) {
    const handle = expect(this, Tokenizer);
    const source = textBytes(text);
    // The library promises at most three ids more than bytes.
    const tokens = new Int32Array(source.length + 3);
    const needed = new BigUint64Array(1);
    await run('tokenizer_encode', { uses: [handle], signal }, () => [
      handle.pointerInUse, source, source.length, (bos ? 1 : 0) | (eos ? 2 : 0), tokens, tokens.length, needed,
    ]);
    return tokens.slice(0, Number(needed[0]));
  }

  /** The same at once, for short texts. */
  encodeSync(text, { bos = true, eos = false } = {}) {
    const pointer = pointerOf(this, Tokenizer);
    const source = textBytes(text);
    const tokens = new Int32Array(source.length + 3);
    const needed = new BigUint64Array(1);
    call('tokenizer_encode', pointer, source, source.length, (bos ? 1 : 0) | (eos ? 2 : 0), tokens, tokens.length, needed);
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

  /** The bytes of one id; they may be part of a character. previous: the id before it. spelled: leave "<0x0A>" as it is. */
  decodeToken(token, { previous = -1, spelled = false } = {}) {
    const parameters = [pointerOf(this, Tokenizer), tokenId('previous', previous), tokenId('token', token), spelled ? 1 : 0];
    return Uint8Array.from(bytesOf('tokenizer_decode', parameters));
  }

  /** The piece of an id exactly as the file has it. */
  piece(token) {
    const score = new Float32Array(1);
    const piece = bytesOf('tokenizer_piece', [pointerOf(this, Tokenizer), tokenId('token', token)], [score]);
    return { bytes: Uint8Array.from(piece), score: score[0] };
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
