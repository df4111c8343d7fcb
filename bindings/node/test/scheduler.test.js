import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClosedError, Sampler } from 'proofinfer';
import { collect, smallWorld } from './support.js';

const aborted = (reason) => (error) => error.name === 'AbortError' && error.cause === reason;

test('sixteen jobs in a scheduler for four give what each gives alone', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const scheduler = model.createScheduler(tokenizer, { maxGenerations: 4, prefillChunk: 3 });
  const line = Array.from({ length: 16 }, (_, i) => i);
  const worker = async () => {
    for (let i = line.shift(); i !== undefined; i = line.shift()) {
      const options = { temperature: 1, seed: i, maxTokens: 5 + i, stopTokens: [] };
      const prompt = tokenizer.encodeSync(`prompt ${i * i}`);
      const session = await model.createSession();
      const alone = await collect(session.generate(tokenizer, prompt, options));
      await session.close();
      const job = await scheduler.submit(prompt, options);
      assert.deepEqual(await collect(job), alone);
      assert.equal(job.stopReason, 'length');
      assert.deepEqual(await job.next(), { done: true, value: undefined });
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  assert.equal(scheduler.count, 0);
  assert.ok(scheduler.memoryBytes > 0);
  await scheduler.close();
});

test('generations of clones go on in a scheduler', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const scheduler = model.createScheduler(tokenizer, { maxGenerations: 2 });
  const session = await model.createSession();
  await session.append(tokenizer.encodeSync('a prompt'));
  const start = async (sampler) =>
    (await session.clone()).generate(tokenizer, [], { maxTokens: 9, stopTokens: [], sampler });
  const alone = await collect(await start());
  assert.deepEqual(await collect(scheduler.add(await start())), alone);
  const sampler = Sampler.create(model.vocabSize);
  sampler.setBanned([alone.tokens[0]]);
  const without = await collect(await start(sampler));
  assert.notEqual(without.tokens[0], alone.tokens[0]);
  assert.deepEqual(await collect(scheduler.add(await start(sampler))), without);
  const controller = new AbortController();
  controller.abort(new Error('enough'));
  assert.throws(() => scheduler.add(1), TypeError);
  const late = await start();
  assert.throws(() => scheduler.add(late, { signal: controller.signal }), { name: 'AbortError' });
  await late.close();
  assert.throws(() => scheduler.add(late), ClosedError);
  await scheduler.close();
});

test('breaks, signals, a full scheduler and its closing', async (t) => {
  const { model, tokenizer } = await smallWorld(t);
  const scheduler = model.createScheduler(tokenizer, { maxGenerations: 3 });
  const endless = { stopTokens: [], contextLength: 200 };

  const left = await scheduler.submit([1], endless);
  let read = 0;
  for await (const piece of left) if (piece.token !== null && ++read === 5) break;
  assert.equal(scheduler.count, 0, 'a break gives its place back');
  assert.deepEqual(await left.next(), { done: true, value: undefined });

  const controller = new AbortController();
  const reason = new Error('enough');
  const signalled = await scheduler.submit([1], { ...endless, signal: controller.signal });
  await signalled.next();
  controller.abort(reason);
  await assert.rejects(signalled.next(), aborted(reason));
  await signalled.close();
  await assert.rejects(scheduler.submit([1], { signal: controller.signal }), aborted(reason));

  const idle = await scheduler.submit([1], endless);
  const other = await scheduler.submit([1], { maxTokens: 40, stopTokens: [] });
  assert.equal((await collect(other)).tokens.length, 40, 'one that nobody reads holds back itself only');
  await scheduler.submit([1], endless);
  const last = await scheduler.submit([1], endless);
  await assert.rejects(scheduler.submit([1], endless), { code: 'PROOFINFER_E_LIMIT' });
  await idle.close();
  await idle.close();
  await assert.rejects(scheduler.submit([]), { code: 'PROOFINFER_E_STATE' });
  await scheduler.close();
  await assert.rejects(collect(last), ClosedError);
  await last.close();
  await assert.rejects(scheduler.submit([1]), ClosedError);
});
