// Not run: what the declarations must allow, and what they must refuse.
import {
  AbortError, Generation, Model, type Piece, ProofinferError, Sampler, Tokenizer, kernelSets, loadLibrary, logprobs, options, setMaxWorkers,
  topLogprobs, version,
} from 'proofinfer';

export async function story(path: string, signal: AbortSignal): Promise<string> {
  await using model = await Model.open(path, { threads: 2, signal });
  await using tokenizer = await Tokenizer.open('tokenizer.bin', model);
  await using session = await model.createSession({ contextLength: 128 });
  const prompt: Int32Array = await tokenizer.encode('Once upon a time');
  let text = tokenizer.decode(prompt);
  for await (const piece of session.generate(tokenizer, prompt, { temperature: 0.8, seed: 7n, maxTokens: 9, stopTokens: [1, 2], signal })) {
    const p: Piece = piece;
    text += p.text;
    if (p.stopReason === 'length') break;
    // @ts-expect-error there is no such reason
    if (p.stopReason === 'boredom') break;
  }
  using sampler = Sampler.create(model.vocabSize, { topP: 0.5 });
  const generation: Generation = session.generate(tokenizer, [1], { sampler, maxTokens: 4 });
  const result = await generation.next();
  if (!result.done) text += result.value.token ?? '';
  await session.append([1, 2], { logits: 'all' });
  const logits: Float32Array = session.logits(1);
  sampler.setBias(new Map([[3, -1.5]]));
  sampler.setMask(new Uint32Array(16));
  sampler.setMask(null);
  // @ts-expect-error a mask has words of 32 bits
  sampler.setMask([1]);
  const token: number = sampler.sample(logits);
  const best: number | undefined = topLogprobs(logits, 3)[0]?.logprob;
  text += best ?? logprobs(logits, [token])[0];
  const shaped = session.generate(tokenizer, [1], { topK: 4, minP: 0.1, typicalP: 0.9, presencePenalty: 1, stopStrings: ['.', new Uint8Array(1)], logprobs: 2 });
  for await (const piece of shaped) text += piece.topLogprobs?.[0]?.token ?? shaped.stopString;
  const batch = model.createBatch(4);
  batch.add(session, token, { logits: false });
  await batch.evaluate({ signal });
  return text + version() + loadLibrary() + kernelSets()[0]?.name + options()[0]?.type;
}

export function describe(error: unknown): string {
  if (error instanceof ProofinferError) return `${error.code} ${error.status ?? ''} ${error.message}`;
  if (error instanceof AbortError) return error.code;
  return String(error);
}

setMaxWorkers(3);
// @ts-expect-error a model is opened, not constructed
new Model();
// @ts-expect-error the option has another name
void Model.open('x', { thread: 2 });
// @ts-expect-error a path is text
void Model.open(7);
