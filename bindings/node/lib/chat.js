// Message lists in chat templates, as token ids.
import { pointerOf } from './handle.js';
import { E_BUFFER, call, native } from './native.js';
import { Tokenizer, textBytes } from './tokenizer.js';

const ROLES = { system: 1, user: 2, assistant: 3 };
const ANSWER = 1;

/** The names of the chat templates that are known. */
export function chatTemplates() {
  const f = native();
  return Array.from({ length: Number(f.chat_template_count()) }, (_, i) => f.chat_template_name(i));
}

/** The name of the chat template that the tokenizer's file carries; null if it has none, or none that is known. */
export function chatTemplate(tokenizer) {
  return native().chat_template(pointerOf(tokenizer, Tokenizer));
}

function nameBytes(template) {
  if (template !== undefined && typeof template !== 'string') throw new TypeError(`template: expected a string, found ${typeof template}`);
  return Buffer.from(template ?? '');
}

function partsOf(message, i) {
  if (message === null || typeof message !== 'object') throw new TypeError(`messages[${i}]: expected { role, content }`);
  if (!Object.hasOwn(ROLES, message.role))
    throw new TypeError(`messages[${i}].role: expected ${Object.keys(ROLES).join(', ')}, found ${message.role}`);
  return [ROLES[message.role], textBytes(message.content)];
}

/**
 * Messages, { role, content }, to token ids. What a message says stays text, whatever it spells. template: one of chatTemplates(), or the file's.
 * answer: what the assistant's next message begins with stands at the end, so that the ids are a prompt for it.
 */
export function encodeChat(tokenizer, messages, { template, answer = true } = {}) {
  const pointer = pointerOf(tokenizer, Tokenizer);
  const name = nameBytes(template);
  const parts = Array.from(messages, partsOf);
  const roles = Int32Array.from(parts, ([role]) => role);
  const contents = Buffer.concat(parts.map(([, content]) => content));
  const sizes = BigUint64Array.from(parts, ([, content]) => BigInt(content.length));
  const needed = new BigUint64Array(1);
  // A guess at first: an id a byte, and what stands around each message.
  for (let capacity = contents.length + 64 * (parts.length + 1); ; capacity = Number(needed[0])) {
    const ids = new Int32Array(capacity);
    try {
      call(
        'chat_encode', pointer, name, name.length, roles, contents, sizes, parts.length, answer ? ANSWER : 0, ids, ids.length, needed,
      );
      return ids.slice(0, Number(needed[0]));
    } catch (error) {
      if (error.status !== E_BUFFER) throw error;
    }
  }
}

/** The ids that end the assistant's message. */
export function chatStopTokens(tokenizer, template) {
  const name = nameBytes(template);
  const ids = new Int32Array(8);
  const needed = new BigUint64Array(1);
  call('chat_stop_tokens', pointerOf(tokenizer, Tokenizer), name, name.length, ids, ids.length, needed);
  return ids.slice(0, Number(needed[0]));
}
