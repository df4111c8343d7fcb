import { chatStopTokens, encodeChat } from './chat.js';
import { Generation } from './generation.js';
import { Owner, expect, handleOf, own, pointerOf } from './handle.js';
import { E_BUFFER, call, native } from './native.js';
import { bytes, size, tokenArray, withOptions } from './options.js';
import { SAMPLER_OPTIONS, Sampler } from './sampler.js';
import { run } from './work.js';

const LOGITS = { none: 0, last: 1, all: 2 };

/** One sequence of tokens and its KV cache. Calls that return promises wait for each other; the others refuse while one of those runs. */
export class Session extends Owner {
  #contextLength;
  #vocabSize;
  constructor(key, what, pointer, vocabSize) {
    super(key, what, pointer);
    this.#contextLength = Number(native().session_context_length(pointer));
    this.#vocabSize = vocabSize;
  }

  static create(model, options) {
    const handle = handleOf(model);
    const out = new BigUint64Array(1);
    return withOptions(options, ['signal'], async (settings) => {
      await run('session_create', { uses: [handle], signal: options.signal }, () => [handle.pointerInUse, settings, out]);
      return own(Session, 'session', out[0], model.vocabSize);
    });
  }

  /**
   * Makes another session that holds the same tokens, and the logits of the last one if they are kept. Keys and values are shared until one of
   * the two overwrites them. Without options it has this session's settings; with some, the defaults for the others, but for contextLength.
   */
  async clone(options = {}) {
    const handle = expect(this, Session);
    const out = new BigUint64Array(1);
    return withOptions(options, ['signal'], async (settings) => {
      await run('session_clone', { locks: [handle], uses: [handle], signal: options.signal }, () => [handle.pointerInUse, settings, out]);
      return own(Session, 'session', out[0], this.#vocabSize);
    });
  }

  /** What the session holds as bytes, for restore() here, in another process or on another machine. Equal states give equal bytes. */
  async save({ signal } = {}) {
    const handle = expect(this, Session);
    const needed = new BigUint64Array(1);
    const take = (buffer) =>
      run('session_save', { locks: [handle], uses: [handle], signal }, () => [handle.pointerInUse, buffer, buffer.length, needed]);
    for (let capacity = 1 << 16; ; capacity = Number(needed[0])) {
      const buffer = new Uint8Array(capacity);
      try {
        await take(buffer);
        return buffer.slice(0, Number(needed[0]));
      } catch (error) {
        if (error.status !== E_BUFFER) throw error;
      }
    }
  }

  /**
   * Replaces what the session holds by a saved state, which must stay as it is until the promise settles. On failure (changed bytes,
   * another model's, no room) the session is as before.
   */
  async restore(state, { signal } = {}) {
    const handle = expect(this, Session);
    const data = bytes('state', state);
    await run('session_restore', { locks: [handle], uses: [handle], signal }, () => [handle.pointerInUse, data, data.length]);
  }

  /** The number of positions that there is room for. */
  get contextLength() {
    return this.#contextLength;
  }

  /** The number of tokens appended. */
  get position() {
    return Number(native().session_position(pointerOf(this, Session)));
  }

  /** All memory that the session holds. */
  get memoryBytes() {
    return Number(native().session_memory_bytes(pointerOf(this, Session)));
  }

  /** The tokens appended so far. */
  get tokens() {
    const tokens = new Int32Array(this.#contextLength);
    const needed = new BigUint64Array(1);
    call('session_tokens', pointerOf(this, Session), tokens, tokens.length, needed);
    return tokens.slice(0, Number(needed[0]));
  }

  /** Evaluates tokens and keeps the logits asked for: 'none', 'last' or 'all'. On failure the session is as before. */
  async append(tokens, { logits = 'last', signal } = {}) {
    const handle = expect(this, Session);
    const ids = tokenArray(tokens);
    if (!Object.hasOwn(LOGITS, logits)) throw new TypeError(`logits: expected 'none', 'last' or 'all', found ${logits}`);
    await run('session_append', { locks: [handle], uses: [handle], signal }, (cancel) => [
      handle.pointerInUse, ids, ids.length, LOGITS[logits], cancel,
    ]);
  }

  /**
   * Appends tokens and tells the logarithm of the probability of each behind all before it; NaN for the first token of an empty session. On
   * failure the session is as before.
   */
  async score(tokens, { signal } = {}) {
    const handle = expect(this, Session);
    const ids = tokenArray(tokens);
    const values = new Float32Array(ids.length);
    await run('session_score', { locks: [handle], uses: [handle], signal }, (cancel) => [handle.pointerInUse, ids, ids.length, values, cancel]);
    return values;
  }

  /** Copies the logits of a position, by default the last one, into a new array or the one given. */
  logits(position = this.position - 1, into = new Float32Array(this.#vocabSize)) {
    if (!(into instanceof Float32Array)) throw new TypeError('into: expected a Float32Array');
    const needed = new BigUint64Array(1);
    call('session_logits', pointerOf(this, Session), size('position', position), into, into.length, needed);
    return into;
  }

  /** Forgets everything from position on, so that the next token lands there. */
  rewind(position) {
    call('session_rewind', pointerOf(this, Session), size('position', position));
  }

  /**
   * Continues the session with a prompt, token ids; an empty one wants tokens with logits in the session. options: a sampler, or a
   * sampler's settings (SAMPLER_OPTIONS); maxTokens, stopTokens, stopStrings, logprobs, signal.
   */
  generate(tokenizer, prompt, options = {}) {
    if (options.sampler !== undefined) return Generation.start(this, tokenizer, options.sampler, prompt, options);
    const isSamplers = ([name]) => SAMPLER_OPTIONS.includes(name);
    const rest = Object.fromEntries(Object.entries(options).filter((entry) => !isSamplers(entry)));
    const sampler = Sampler.create(this.#vocabSize, Object.fromEntries(Object.entries(options).filter(isSamplers)));
    try {
      return Generation.start(this, tokenizer, sampler, prompt, rest);
    } finally {
      sampler.close(); // the generation keeps what it needs
    }
  }

  /**
   * The assistant's answer to a list of messages, as a generation. What the session shares with the list is kept, so that a conversation that grows
   * is evaluated where it is new only. options: those of generate; template; stopTokens default to chatStopTokens().
   */
  chat(tokenizer, messages, { template, ...options } = {}) {
    const prompt = encodeChat(tokenizer, messages, { template });
    const held = this.tokens;
    const most = Math.min(held.length, prompt.length - 1);
    let common = 0;
    while (common < most && held[common] === prompt[common]) common++;
    if (prompt.length > this.contextLength)
      throw new RangeError(`messages: the chat has ${prompt.length} tokens; the session has ${this.contextLength} positions`);
    this.rewind(common);
    return this.generate(tokenizer, prompt.subarray(common), { stopTokens: chatStopTokens(tokenizer, template), ...options });
  }
}
