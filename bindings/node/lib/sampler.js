import { Owner, own, pointerOf } from './handle.js';
import { call, create } from './native.js';
import { INT32, integer, size, tokenArray, withOptions } from './options.js';

/** The names of the options that a sampler has. */
export const SAMPLER_OPTIONS = [
  'temperature', 'topP', 'topK', 'typicalP', 'minP', 'repetitionPenalty', 'frequencyPenalty', 'presencePenalty', 'penaltyWindow', 'seed',
  'memoryLimit',
];

function expectLogits(logits) {
  if (!(logits instanceof Float32Array)) throw new TypeError('logits: expected a Float32Array');
}

/** Picks tokens from logits and holds the random state. */
export class Sampler extends Owner {
  /** options: SAMPLER_OPTIONS. */
  static create(vocabSize, options = {}) {
    const count = Number(integer('vocabSize', vocabSize, ...INT32));
    return withOptions(options, [], (settings) => own(Sampler, 'sampler', create('sampler_create', count, settings)));
  }

  /** Picks a token. logits: a Float32Array of the vocabulary's size, not changed. */
  sample(logits) {
    expectLogits(logits);
    const token = new Int32Array(1);
    call('sampler_sample', pointerOf(this, Sampler), logits, logits.length, token);
    return token[0];
  }

  /** Lets tokens of another origin, a prompt say, join the window of the penalties, oldest first. */
  accept(tokens) {
    const ids = tokenArray(tokens);
    call('sampler_accept', pointerOf(this, Sampler), ids, ids.length);
  }

  /** Adds numbers to the logits of some tokens, in place of all biases of before: a Map or pairs of token and bias. */
  setBias(biases) {
    const pairs = Array.from(biases);
    for (const [, bias] of pairs)
      if (typeof bias !== 'number') throw new TypeError(`bias: expected a number, found ${typeof bias}`);
    const ids = tokenArray(pairs.map(([token]) => token));
    call('sampler_set_bias', pointerOf(this, Sampler), ids, Float32Array.from(pairs, ([, bias]) => bias), ids.length);
  }

  /** Bans tokens, in place of those banned before: they are never picked. */
  setBanned(tokens) {
    const ids = tokenArray(tokens);
    call('sampler_set_banned', pointerOf(this, Sampler), ids, ids.length);
  }

  /** Allows only the tokens of a mask, a Uint32Array, until another one takes its place; null lifts it. */
  setMask(mask) {
    if (mask !== null && !(mask instanceof Uint32Array)) throw new TypeError('mask: expected a Uint32Array or null');
    call('sampler_set_mask', pointerOf(this, Sampler), mask, mask === null ? 0 : mask.length);
  }

  /** Sets the random state, as the option seed does, and empties the window of the penalties. */
  reseed(seed) {
    call('sampler_reseed', pointerOf(this, Sampler), integer('seed', seed, 0n, 2n ** 64n - 1n));
  }
}

/** The logarithms of the probabilities of tokens by the model's own distribution: the softmax of the logits as they are. */
export function logprobs(logits, tokens) {
  expectLogits(logits);
  const ids = tokenArray(tokens);
  const values = new Float32Array(ids.length);
  call('logits_logprobs', logits, logits.length, ids, ids.length, values);
  return Array.from(values);
}

/** The most probable tokens by the same, most probable first: { token, logprob }. */
export function topLogprobs(logits, count) {
  expectLogits(logits);
  const n = size('count', count);
  if (n > logits.length) throw new RangeError(`count: expected at most the number of logits, ${logits.length}, found ${n}`);
  const ids = new Int32Array(n);
  const values = new Float32Array(n);
  call('logits_top', logits, logits.length, n, ids, values);
  return Array.from(ids, (token, i) => ({ token, logprob: values[i] }));
}
