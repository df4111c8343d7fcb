import { Owner, expect, pointerOf } from './handle.js';
import { call } from './native.js';
import { tokenId } from './tokenizer.js';
import { Session } from './session.js';
import { run } from './work.js';

/** Tokens of many sessions in one pass over the weights; the bits of each session are those of running alone. */
export class Batch extends Owner {
  #queued = new Set(); // handles of the sessions that have tokens in the queue

  /** Queues one token for a session. logits: keep those of this token's position. */
  add(session, token, { logits = true } = {}) {
    call('batch_add', pointerOf(this, Batch), pointerOf(session, Session), tokenId('token', token), logits ? 1 : 0);
    this.#queued.add(expect(session, Session));
  }

  /** Evaluates what is queued and empties the queue. On failure no session has moved and the queue is kept. */
  async evaluate({ signal } = {}) {
    const handle = expect(this, Batch);
    await run('batch_evaluate', { locks: [handle, ...this.#queued], uses: [handle], signal }, (cancel) => [handle.pointerInUse, cancel]);
    this.#queued.clear();
  }

  /** Empties the queue. */
  clear() {
    call('batch_clear', pointerOf(this, Batch));
    this.#queued.clear();
  }
}
