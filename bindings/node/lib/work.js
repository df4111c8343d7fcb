// Runs C calls on a few threads of the pool, in order, and stops them when a signal says so.
import { AbortError } from './errors.js';
import { E_CANCELLED, OK, create, failure, native } from './native.js';

/** Calls that run at the same time at most, and so the threads of the process's pool that this package takes at most. */
let limit = 2;
let running = 0;
let waiting = []; // jobs that have not started, oldest first
const active = new Set(); // cancels of the jobs that run
const spareCancels = [];
const jobsOf = new WeakMap(); // signal -> the jobs that it stops, for one listener a signal

/** Sets how many calls may run at the same time: 1 and up. Node's pool has UV_THREADPOOL_SIZE threads, 4 unless told otherwise. */
export function setMaxWorkers(count) {
  if (!Number.isInteger(count) || count < 1 || count > 1024)
    throw new RangeError(`count: expected a whole number from 1 to 1024, found ${count}`);
  limit = count;
  startJobs();
}

/** How many calls may run at the same time. */
export function maxWorkers() {
  return limit;
}

// Ends what runs, so that Node's exit does not wait for the end of a long prompt.
process.on('exit', () => {
  for (const cancel of active) native().cancel_request(cancel);
});

/** The jobs that signal stops. */
function stoppedBy(signal) {
  let jobs = jobsOf.get(signal);
  if (!jobs) {
    jobs = new Set();
    jobsOf.set(signal, jobs);
    signal.addEventListener('abort', () => jobs.forEach((job) => job.abort()), { once: true });
  }
  return jobs;
}

/** Throws if the operation must not begin. */
export function checkSignal(signal) {
  if (signal === undefined) return;
  if (!(signal instanceof AbortSignal)) throw new TypeError('signal: expected an AbortSignal');
  if (signal.aborted) throw new AbortError(signal.reason);
}

/** One C call on a pool thread. */
class Job {
  cancel = null; // while it runs
  constructor(name, locks, parameters, signal, resolve, reject) {
    Object.assign(this, { name, locks, parameters, signal, resolve, reject });
  }

  start() {
    running++;
    for (const lock of this.locks) lock.held = true;
    const slot = new BigUint64Array(1);
    try {
      this.cancel = spareCancels.pop() ?? create('cancel_create');
      active.add(this.cancel);
      const parameters = [...this.parameters(this.cancel), slot];
      // The closure keeps the parameters: typed arrays among them are memory that C works on.
      native()[this.name].async(...parameters, (error, status) => this.end(error, status, slot, parameters));
    } catch (error) {
      this.end(error);
    }
  }

  end(error, status, slot) {
    if (this.cancel !== null) {
      active.delete(this.cancel);
      native().cancel_reset(this.cancel);
      spareCancels.push(this.cancel);
      this.cancel = null;
    }
    for (const lock of this.locks) lock.held = false;
    running--;
    this.forget();
    startJobs();
    if (error) return this.reject(error);
    if (status === OK) return this.resolve();
    const problem = failure(status, slot);
    this.reject(status === E_CANCELLED && this.signal?.aborted ? new AbortError(this.signal.reason) : problem);
  }

  /** The signal asked for the end. */
  abort() {
    if (this.cancel !== null) return native().cancel_request(this.cancel);
    waiting = waiting.filter((job) => job !== this);
    this.forget();
    this.reject(new AbortError(this.signal.reason));
  }

  forget() {
    if (this.signal) jobsOf.get(this.signal).delete(this);
  }
}

/** A call that can neither fail nor be cancelled. */
class FreeJob {
  locks = [];
  constructor(name, pointer, resolve) {
    Object.assign(this, { name, pointer, resolve });
  }

  start() {
    running++;
    native()[this.name].async(this.pointer, () => {
      running--;
      startJobs();
      this.resolve();
    });
  }
}

/** Starts what may start. A job waits for its locks; what comes later and wants one of them waits behind it. */
function startJobs() {
  if (waiting.length === 0) return;
  const claimed = new Set();
  const queue = waiting;
  waiting = [];
  const ready = [];
  for (const job of queue) {
    if (running + ready.length < limit && job.locks.every((lock) => !lock.held && !claimed.has(lock))) ready.push(job);
    else waiting.push(job);
    for (const lock of job.locks) claimed.add(lock);
  }
  for (const job of ready) job.start();
}

/**
 * Runs the C function `name` on a pool thread; resolves when it ends with OK. locks: objects of which only one job at a time may hold
 * each. parameters(cancel): those of the function without the error at the end. uses: handles that stay open meanwhile.
 */
export function run(name, { locks = [], uses = [], signal }, parameters) {
  return new Promise((resolve, reject) => {
    checkSignal(signal);
    native();
    const taken = [];
    const settle = (after) => (value) => {
      for (const handle of taken) handle.release();
      after(value);
    };
    try {
      for (const handle of uses) {
        handle.use();
        taken.push(handle);
      }
    } catch (error) {
      return settle(reject)(error);
    }
    const job = new Job(name, locks, parameters, signal, settle(resolve), settle(reject));
    if (signal) stoppedBy(signal).add(job);
    waiting.push(job);
    startJobs();
  });
}

/** Runs a C function that frees on a pool thread, before what waits. */
export function free(name, pointer) {
  return new Promise((resolve) => {
    waiting.unshift(new FreeJob(name, pointer, resolve));
    startJobs();
  });
}
