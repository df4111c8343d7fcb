import { AbortError, ClosedError, ProofinferError } from './errors.js';
import { Generation } from './generation.js';
import { Owner, expect, handleOf, own, pointerOf } from './handle.js';
import { E_BUFFER, OK, call, create, failure, native } from './native.js';
import { tokenArray, withOptions } from './options.js';
import { Tokenizer } from './tokenizer.js';
import { checkSignal, run } from './work.js';

const REASONS = [null, 'token', 'length', 'context', 'string', 'cancelled'];
const MOST_QUEUED = 16; // pieces that a job keeps for its reader; then this job alone stands still

/**
 * One generation in a scheduler: an async iterator of pieces { token, text, stopReason } that ends after the piece with a stopReason. A break
 * cancels it, as its signal does.
 */
export class Job {
  #pieces = [];
  #readers = []; // of pieces that are still to come: { resolve, reject }
  #ended = false;
  #error = null;
  #stopReason = null;
  #unread = false; // no piece is wanted any more
  #withdraw;
  #wake;
  #left;
  #leave;
  constructor(withdraw, wake) {
    this.#withdraw = withdraw;
    this.#wake = wake;
    this.#left = new Promise((resolve) => (this.#leave = resolve));
  }

  /** Why the generation ended: 'token', 'length', 'context'; null while it goes on. */
  get stopReason() {
    return this.#stopReason;
  }

  /** The next piece, or done. */
  next() {
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject });
      if (this.#pieces.length === MOST_QUEUED) this.#wake();
      this.#serve();
    });
  }

  /** Cancels what is left, and resolves when the scheduler has given its memory back. */
  async return(value) {
    this.#unread = true;
    this.#pieces.length = 0;
    this.#error = null;
    if (!this.#ended) this.#withdraw();
    await this.#left;
    return { done: true, value };
  }

  /** The same as return(). */
  async close() {
    await this.return();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  #serve() {
    while (this.#readers.length > 0 && (this.#pieces.length > 0 || this.#ended || this.#unread)) {
      const { resolve, reject } = this.#readers.shift();
      if (this.#pieces.length > 0) {
        const piece = this.#pieces.shift();
        if (piece.stopReason !== null) this.#stopReason = piece.stopReason;
        resolve({ done: false, value: piece });
      } else if (this.#error !== null) {
        reject(this.#error);
      } else {
        resolve({ done: true, value: undefined });
      }
    }
  }

  /** For the scheduler: whether it may hand over a piece, the piece, and the end. */
  static hasRoom(job) {
    return job.#unread || job.#pieces.length < MOST_QUEUED;
  }
  static push(job, piece) {
    if (!job.#unread) job.#pieces.push(piece);
    job.#serve();
  }
  static end(job, error) {
    job.#ended = true;
    if (!job.#unread) job.#error = error;
    job.#serve();
    job.#leave();
  }
  /** The signal's abort: what was not read yet is not wanted any more. */
  static abort(job, error) {
    job.#unread = true;
    job.#pieces.length = 0;
    job.#error = error;
    job.#serve();
    job.#withdraw();
  }
}

/**
 * Runs many generations of one model together: each pass over the weights gives a token to every one that decodes, and the tokens and text of each are
 * those of running alone. Passes run on a pool thread while there is work.
 */
export class Scheduler extends Owner {
  #jobs = new Map(); // id -> { job, detach }
  #text = new Uint8Array(64);
  #numbers = new Int32Array(2); // token, stop reason
  #sizes = new BigUint64Array(3); // id, needed, rows
  #turning = false;
  #awake = false; // something happened since the last look
  #sleeper = null;

  static create(model, tokenizer, options) {
    const tokens = pointerOf(tokenizer, Tokenizer);
    return withOptions(options, [], (settings) =>
      own(Scheduler, 'scheduler', create('scheduler_create', handleOf(model).pointer, tokens, settings)),
    );
  }

  /** How many generations have not left. */
  get count() {
    return Number(native().scheduler_count(pointerOf(this, Scheduler)));
  }

  /** All memory that the scheduler holds. */
  get memoryBytes() {
    return Number(native().scheduler_memory_bytes(pointerOf(this, Scheduler)));
  }

  /**
   * Hands in a prompt, token ids; resolves to its Job. options: contextLength; temperature, topP, seed and the like; maxTokens, stopTokens; signal.
   * PROOFINFER_E_LIMIT: the scheduler is full, or its memory.
   */
  async submit(prompt, { signal, ...options } = {}) {
    const handle = expect(this, Scheduler);
    const ids = tokenArray(prompt);
    const out = new BigUint64Array(1);
    checkSignal(signal);
    await withOptions(options, [], (settings) =>
      run('scheduler_submit', { uses: [handle], signal }, () => [handle.pointerInUse, ids, ids.length, settings, out]),
    );
    return this.#enlist(handle, out[0], signal);
  }

  /**
   * Hands in a generation made with session.generate, which goes on where it stands: that of a cloned or restored session, or one whose sampler has
   * biases or a mask. Until it leaves, its session must not be moved. Its own signal does not count; options: signal.
   */
  add(generation, { signal } = {}) {
    const handle = expect(this, Scheduler);
    checkSignal(signal);
    const out = new BigUint64Array(1);
    call('scheduler_add', handle.pointer, pointerOf(generation, Generation), out);
    return this.#enlist(handle, out[0], signal);
  }

  #enlist(handle, id, signal) {
    const job = new Job(() => this.#cancel(id), () => this.#wake());
    const abort = () => Job.abort(job, new AbortError(signal.reason));
    this.#jobs.set(id, { job, detach: () => signal?.removeEventListener('abort', abort) });
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    this.#wake();
    if (!this.#turning) this.#turn(handle);
    return job;
  }

  #cancel(id) {
    if (!this.closed && this.#jobs.has(id)) call('scheduler_cancel', pointerOf(this, Scheduler), id);
    this.#wake();
  }

  #wake() {
    this.#awake = true;
    this.#sleeper?.();
  }

  async #sleep() {
    if (!this.#awake) await new Promise((resolve) => (this.#sleeper = resolve));
    this.#sleeper = null;
  }

  /** Passes and pieces in turn, while there are jobs. */
  async #turn(handle) {
    this.#turning = true;
    let reason = null;
    try {
      while (this.#jobs.size > 0) {
        this.#awake = false;
        await run('scheduler_step', { locks: [handle], uses: [handle] }, (cancel) => [handle.pointerInUse, cancel, this.#sizes.subarray(2)]);
        const moved = this.#deliver();
        if (this.#sizes[2] === 0n && !moved) await this.#sleep();
      }
    } catch (error) {
      reason = error;
    }
    this.#turning = false;
    for (const id of [...this.#jobs.keys()]) this.#end(id, reason ?? new ClosedError('scheduler'));
  }

  /** Hands on the pieces of the jobs that have room for them; whether there were any. */
  #deliver() {
    let moved = false;
    for (const [id, { job }] of this.#jobs) if (Job.hasRoom(job)) moved = this.#take(id, job) || moved;
    return moved;
  }

  #take(id, job) {
    const [slot, scheduler] = [new BigUint64Array(1), pointerOf(this, Scheduler)];
    const status = native().scheduler_next(
      scheduler, id, this.#sizes.subarray(0, 1), this.#numbers.subarray(0, 1), this.#text, this.#text.length, this.#sizes.subarray(1, 2),
      this.#numbers.subarray(1), slot,
    );
    const needed = Number(this.#sizes[1]);
    if (status !== OK) {
      const error = failure(status, slot);
      if (status === E_BUFFER) {
        this.#text = new Uint8Array(needed);
        return this.#take(id, job);
      }
      this.#end(id, error);
      return true;
    }
    if (this.#sizes[0] === 0n) return false;
    const [token, reason] = this.#numbers;
    if (REASONS[reason] === 'cancelled') {
      this.#end(id, new ProofinferError('PROOFINFER_E_CANCELLED', 'the generation was cancelled', 11));
      return true;
    }
    const text = Buffer.from(this.#text.buffer, 0, needed).toString();
    Job.push(job, { token: token < 0 ? null : token, text, stopReason: REASONS[reason] });
    if (reason !== 0) this.#end(id, null);
    return true;
  }

  #end(id, error) {
    const { job, detach } = this.#jobs.get(id);
    this.#jobs.delete(id);
    detach();
    Job.end(job, error);
  }

  /** Cancels what runs and frees the scheduler after the pass that is under way. */
  close() {
    const closed = super.close();
    this.#wake();
    return closed;
  }
}
