// Owns one object of the library: counts the calls that use it and frees it once, after the last of them.
import { ClosedError } from './errors.js';
import { native } from './native.js';
import { free } from './work.js';

// Symbol.asyncDispose where Node has it, else the symbol that its own modules use before that.
const dispose = Symbol.dispose ?? Symbol.for('nodejs.dispose');
const asyncDispose = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose');

class Handle {
  #pointer;
  #what;
  #free;
  #uses = 0;
  #closing; // the promise that close gave, and its resolve
  held = false; // by a job, see work.js
  constructor(pointer, what, large) {
    this.#pointer = pointer;
    this.#what = what;
    // Large objects are freed on a pool thread: gigabytes take a while.
    this.#free = large ? () => free(`${what}_free`, pointer) : () => native()[`${what}_free`](pointer);
  }

  /** The pointer, for a call that ends with release(). */
  use() {
    if (this.#closing) throw new ClosedError(this.#what);
    this.#uses++;
    return this.#pointer;
  }

  release() {
    if (--this.#uses === 0 && this.#closing) this.#destroy();
  }

  /** The pointer while the handle is open, for a call that ends before anything else can happen. */
  get pointer() {
    if (this.#closing) throw new ClosedError(this.#what);
    return this.#pointer;
  }

  /** The pointer for a call that was counted by use(), also while close() waits for it. */
  get pointerInUse() {
    return this.#pointer;
  }

  close() {
    if (!this.#closing) {
      this.#closing = {};
      this.#closing.promise = new Promise((resolve) => (this.#closing.resolve = resolve));
      if (this.#uses === 0) this.#destroy();
    }
    return this.#closing.promise;
  }

  get closed() {
    return this.#closing !== undefined;
  }

  #destroy() {
    Promise.resolve(this.#free()).then(this.#closing.resolve);
  }
}

// The back-stop for objects that were not closed.
const forgotten = new FinalizationRegistry((handle) => handle.close());

const LARGE = new Set(['model', 'session', 'batch', 'tokenizer', 'scheduler']);
const handles = new WeakMap();

/** The handle of a public object. */
export function handleOf(object) {
  return handles.get(object);
}

/** The pointer of a public object while it is open; a TypeError for anything else. */
export function pointerOf(object, type) {
  return expect(object, type).pointer;
}

/** The handle of a public object of a type. */
export function expect(object, type) {
  if (!(object instanceof type)) throw new TypeError(`expected a ${type.name}, found ${object === null ? 'null' : typeof object}`);
  return handles.get(object);
}

const KEY = Symbol('made by this package');

/** What the public classes have in common. Their constructors are not public. */
export class Owner {
  constructor(key, what, pointer) {
    if (key !== KEY) throw new TypeError(`${new.target.name} objects are not made with new`);
    const handle = new Handle(pointer, what, LARGE.has(what));
    handles.set(this, handle);
    forgotten.register(this, handle);
  }

  /** True after close() was called. */
  get closed() {
    return handles.get(this).closed;
  }

  /** Frees the object after the work in flight ended, and resolves then. More than once does no harm. */
  close() {
    return handles.get(this).close();
  }

  [asyncDispose]() {
    return this.close();
  }

  [dispose]() {
    this.close();
  }
}

/** Makes a public object around a pointer. */
export function own(type, what, pointer, ...rest) {
  return new type(KEY, what, pointer, ...rest);
}
