import { Owner, expect, handleOf, own, pointerOf } from './handle.js';
import { E_BUFFER, call, create } from './native.js';
import { INT32, integer, tokenArray, withOptions } from './options.js';
import { Sampler } from './sampler.js';
import { Session } from './session.js';
import { Tokenizer } from './tokenizer.js';
import { checkSignal, run } from './work.js';

const REASONS = [null, 'token', 'length', 'context', 'string'];

/**
 * Yields pieces: { token, text, stopReason }, with the option logprobs also { logprob, topLogprobs }. An async iterator that ends after the piece with a stopReason and is closed then, as it is by
 * a break. After an error (AbortError included) nothing is lost: next() goes on, or close() frees it.
 */
export class Generation extends Owner {
  #session; // its handle: the lock that all work on the session shares
  #signal;
  #text = new Uint8Array(64);
  #numbers = new Int32Array(2); // token, stop reason
  #needed = new BigUint64Array(1);
  #stopReason = null;
  #stopStrings;
  #stopString = null;
  #logprobs; // how many to tell; 0: none
  #tail = Promise.resolve();
  #returned = false;
  constructor(key, what, pointer, session, options) {
    super(key, what, pointer);
    this.#session = session;
    this.#signal = options.signal;
    this.#stopStrings = options.stopStrings ?? [];
    this.#logprobs = Number(options.logprobs ?? 0);
  }

  static start(session, tokenizer, sampler, prompt, options) {
    const ids = tokenArray(prompt);
    checkSignal(options.signal);
    const pointers = [pointerOf(session, Session), pointerOf(tokenizer, Tokenizer), pointerOf(sampler, Sampler)];
    return withOptions(options, ['signal', 'sampler'], (settings) =>
      own(Generation, 'generation', create('generation_create', ...pointers, ids, ids.length, settings), handleOf(session), options),
    );
  }

  /** Why the generation ended: 'token', 'length', 'context', 'string'; null while it goes on. */
  get stopReason() {
    return this.#stopReason;
  }

  /** The one of stopStrings that ended the generation, or null. */
  get stopString() {
    return this.#stopString;
  }

  /** The next piece, or done. Calls made before the last one settled wait for it. */
  next() {
    const turn = this.#tail.then(() => this.#next());
    this.#tail = turn.catch(() => {});
    return turn;
  }

  async #next() {
    if (this.#stopReason !== null || this.#returned) return { done: true, value: undefined };
    const handle = handleOf(this);
    handle.use(); // also for what is read after the step
    try {
      return { done: false, value: await this.#piece(handle) };
    } finally {
      handle.release();
    }
  }

  async #piece(handle) {
    try {
      await this.#step(handle);
    } catch (error) {
      if (error.status !== E_BUFFER) throw error;
      this.#text = new Uint8Array(Number(this.#needed[0]));
      await this.#step(handle);
    }
    const [token, reason] = this.#numbers;
    const text = Buffer.from(this.#text.buffer, 0, Number(this.#needed[0])).toString();
    this.#stopReason = REASONS[reason];
    const piece = { token: token < 0 ? null : token, text, stopReason: this.#stopReason };
    if (this.#logprobs > 0 && token >= 0) Object.assign(piece, this.#readLogprobs(handle));
    if (this.#stopReason === 'string') this.#stopString = this.#stopStrings[this.#readStopString(handle)];
    if (this.#stopReason !== null) this.close();
    return piece;
  }

  #readLogprobs(handle) {
    const own = new Float32Array(1);
    const tokens = new Int32Array(this.#logprobs);
    const values = new Float32Array(this.#logprobs);
    const needed = new BigUint64Array(1);
    call('generation_logprobs', handle.pointerInUse, own, tokens, values, this.#logprobs, needed);
    const top = Array.from(tokens.subarray(0, Number(needed[0])), (token, i) => ({ token, logprob: values[i] }));
    return { logprob: own[0], topLogprobs: top };
  }

  #readStopString(handle) {
    const index = new BigUint64Array(1);
    call('generation_stop_string', handle.pointerInUse, index);
    return Number(index[0]);
  }

  #step(handle) {
    return run('generation_next', { locks: [this.#session], uses: [handle], signal: this.#signal }, (cancel) => [
      handle.pointerInUse, cancel, this.#numbers.subarray(0, 1), this.#text, this.#text.length, this.#needed, this.#numbers.subarray(1),
    ]);
  }

  /** Ends the iteration and frees the generation; the session keeps what was appended. */
  async return(value) {
    this.#returned = true;
    await this.close();
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** Makes the next piece this token instead of a sampled one; no random number is drawn for it. */
  force(token) {
    call('generation_force', pointerOf(this, Generation), Number(integer('token', token, ...INT32)));
  }
}
