import { Owner, own, pointerOf } from './handle.js';
import { call, create } from './native.js';
import { INT32, integer, withOptions } from './options.js';

/** Picks tokens from logits and holds the random state. */
export class Sampler extends Owner {
  /** options: temperature (0: greedy), topP, seed, memoryLimit. */
  static create(vocabSize, options = {}) {
    const count = Number(integer('vocabSize', vocabSize, ...INT32));
    return withOptions(options, [], (settings) => own(Sampler, 'sampler', create('sampler_create', count, settings)));
  }

  /** Picks a token. logits: a Float32Array of the vocabulary's size, not changed. */
  sample(logits) {
    if (!(logits instanceof Float32Array)) throw new TypeError('logits: expected a Float32Array');
    const token = new Int32Array(1);
    call('sampler_sample', pointerOf(this, Sampler), logits, logits.length, token);
    return token[0];
  }

  /** Sets the random state, as the option seed does. */
  reseed(seed) {
    call('sampler_reseed', pointerOf(this, Sampler), integer('seed', seed, 0n, 2n ** 64n - 1n));
  }
}
