// Log-probabilities of given tokens of many texts, and what they come to.
import { expect } from './handle.js';
import { tokenArray, withOptions } from './options.js';
import { run } from './work.js';

/** The exponential of minus the mean of a text's scores; NaN among them (first tokens) does not count. NaN where nothing does. */
export function perplexity(logprobs) {
  let sum = 0;
  let count = 0;
  for (const value of logprobs) {
    if (Number.isNaN(value)) continue;
    sum += value;
    count++;
  }
  return Math.exp(-sum / count);
}

/** The scores of texts, token ids each: one Float32Array a text. */
export function scoreTexts(model, type, texts, options) {
  const handle = expect(model, type);
  const lists = Array.from(texts, tokenArray);
  const counts = BigUint64Array.from(lists, (list) => BigInt(list.length));
  const total = lists.reduce((sum, list) => sum + list.length, 0);
  const tokens = new Int32Array(total);
  const values = new Float32Array(total);
  let offset = 0;
  for (const list of lists) {
    tokens.set(list, offset);
    offset += list.length;
  }
  return withOptions(options, ['signal'], async (settings) => {
    await run('model_score', { uses: [handle], signal: options.signal }, (cancel) => [
      handle.pointerInUse, tokens, counts, lists.length, settings, values, cancel,
    ]);
    let begin = 0;
    return lists.map((list) => values.slice(begin, (begin += list.length)));
  });
}
