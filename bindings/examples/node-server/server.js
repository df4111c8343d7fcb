// Streams completions of one model as server-sent events. See README.md.
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { Model, ProofinferError, Tokenizer } from 'proofinfer';

const MOST_BODY_BYTES = 2 ** 20;
const MOST_TOKENS = 4096;
const SHUTDOWN_MS = 5000; // for requests that run when SIGTERM comes; then they are cancelled

/** A mistake of the client's, or a refusal: its message is the answer. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** A number of slots, and a line of bounded length for them. */
class Slots {
  taken = 0;
  line = [];
  constructor(count, waiting) {
    Object.assign(this, { count, waiting });
  }

  /** Resolves when there is a slot for the caller, who gives it back with leave(). */
  async enter(signal) {
    signal.throwIfAborted();
    if (this.taken < this.count) {
      this.taken++;
      return;
    }
    if (this.line.length >= this.waiting) throw new Refusal(503, 'too many requests are waiting');
    await new Promise((resolve, reject) => {
      const leaveLine = () => {
        this.line.splice(this.line.indexOf(go), 1);
        reject(signal.reason);
      };
      const go = () => {
        signal.removeEventListener('abort', leaveLine);
        resolve();
      };
      signal.addEventListener('abort', leaveLine, { once: true });
      this.line.push(go);
    });
  }

  leave() {
    const next = this.line.shift();
    if (next) next();
    else this.taken--;
  }
}

async function body(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MOST_BODY_BYTES) throw new Refusal(413, `the body has more than ${MOST_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function wholeNumber(name, value, highest) {
  if (typeof value === 'number' && value > Number.MAX_SAFE_INTEGER) throw new Refusal(400, `${name}: JSON would round it; send it as a text`);
  if (!/^\d+$/.test(value) || BigInt(value) > highest) throw new Refusal(400, `${name}: expected a whole number up to ${highest}, found ${value}`);
  return BigInt(value);
}

/** What the client asks for: query parameters of a GET, or the JSON body of a POST. */
async function parseRequest(request, url) {
  let given = Object.fromEntries(url.searchParams);
  if (request.method === 'POST') {
    try {
      given = Object(JSON.parse(await body(request)));
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal(400, `the body is no JSON: ${error.message}`);
    }
  }
  const { prompt = '', max_tokens = 128, temperature = 0, seed = 1 } = given;
  const maxTokens = Number(wholeNumber('max_tokens', max_tokens, BigInt(MOST_TOKENS)));
  if (maxTokens < 1) throw new Refusal(400, `max_tokens: expected 1 to ${MOST_TOKENS}, found ${maxTokens}`);
  return {
    prompt: String(prompt),
    settings: { maxTokens, temperature: Number(temperature), seed: wholeNumber('seed', seed, 2n ** 64n - 1n) },
  };
}

function reply(response, status, content) {
  response.writeHead(status, { 'Content-Type': 'application/json', ...(status === 503 && { 'Retry-After': '1' }) });
  response.end(`${JSON.stringify(content)}\n`);
}

/** Sends an event, and waits where the client reads slower than the model writes. */
async function send(response, event, signal) {
  signal.throwIfAborted(); // a client that left drains nothing
  if (response.write(`data: ${JSON.stringify(event)}\n\n`)) return;
  await new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    response.once('drain', () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
  });
}

class Service {
  completed = 0;
  dropped = 0;
  refused = 0;
  running = new Set(); // controllers of the requests
  constructor(model, tokenizer, scheduler, slots) {
    Object.assign(this, { model, tokenizer, scheduler, slots });
  }

  async handle(request, response) {
    const url = new URL(request.url, 'http://localhost');
    if (url.pathname === '/status' && request.method === 'GET') return reply(response, 200, this.status());
    if (url.pathname !== '/completion') return reply(response, 404, { error: 'there are /completion and /status' });
    if (request.method !== 'GET' && request.method !== 'POST') return reply(response, 405, { error: 'expected GET or POST' });
    const controller = new AbortController();
    this.running.add(controller);
    response.on('close', () => controller.abort());
    try {
      await this.completion(request, response, url, controller.signal);
      this.completed++;
    } catch (error) {
      this.fail(response, error, controller.signal);
    } finally {
      this.running.delete(controller);
    }
  }

  async completion(request, response, url, signal) {
    const { prompt, settings } = await parseRequest(request, url);
    await this.slots.enter(signal);
    try {
      await this.serve(response, await this.tokenizer.encode(prompt, { signal }), settings, signal);
    } finally {
      this.slots.leave();
    }
  }

  /** Runs one completion beside the others. */
  async serve(response, prompt, settings, signal) {
    const generation = await this.scheduler.submit(prompt, { ...settings, signal });
    try {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
      let tokens = 0;
      for await (const { token, text, stopReason } of generation) {
        if (token !== null && stopReason !== 'token') tokens++;
        if (text !== '') await send(response, { text }, signal);
      }
      await send(response, { done: true, stop_reason: generation.stopReason, tokens }, signal);
      response.end();
    } finally {
      await generation.close();
    }
  }

  fail(response, error, signal) {
    if (signal.aborted) {
      this.dropped++;
      response.destroy();
    } else if (response.headersSent) {
      console.error(error);
      response.destroy();
    } else {
      const clients = ['PROOFINFER_E_ARGUMENT', 'PROOFINFER_E_CONTEXT'].includes(error instanceof ProofinferError && error.code);
      const status = error.status >= 400 ? error.status : clients ? 400 : 500;
      if (status === 503) this.refused++;
      reply(response, status, { error: error.message });
    }
  }

  status() {
    const { completed, dropped, refused, slots } = this;
    return { sessions: slots.taken, waiting: slots.line.length, completed, dropped, refused };
  }
}

const { values: flags } = parseArgs({
  options: {
    listen: { type: 'string', default: '127.0.0.1:8080' },
    model: { type: 'string' },
    tokenizer: { type: 'string' },
    sessions: { type: 'string', default: '4' },
    waiting: { type: 'string', default: '32' },
    threads: { type: 'string', default: '1' },
  },
});

const model = await Model.open(flags.model, { threads: Number(flags.threads) });
const tokenizer = await Tokenizer.open(flags.tokenizer, model);
const scheduler = model.createScheduler(tokenizer, { maxGenerations: Number(flags.sessions) });
const service = new Service(model, tokenizer, scheduler, new Slots(Number(flags.sessions), Number(flags.waiting)));
const server = createServer((request, response) => service.handle(request, response));
const [, host, port] = flags.listen.match(/^(.*):(\d+)$/);
server.listen(Number(port), host, () => console.log(`listening on http://${host}:${server.address().port}`));

let stopping = false;
async function stop() {
  if (stopping) return;
  stopping = true;
  const late = setTimeout(() => service.running.forEach((controller) => controller.abort()), SHUTDOWN_MS);
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeIdleConnections?.();
  });
  clearTimeout(late);
  await Promise.all([scheduler.close(), tokenizer.close(), model.close()]);
  console.log('stopped');
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
