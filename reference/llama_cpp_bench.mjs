// Decode and prefill speed of llama.cpp (llama_cpp.mjs) on a GGUF file, as JSON on stdout.
//   node llama_cpp_bench.mjs MODEL.gguf THREADS PROMPT_TOKENS DECODE_TOKENS REPEATS
import {loadModel} from "./llama_cpp.mjs";

const [modelPath, threads, promptTokens, decodeTokens, repeats] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const model = await loadModel(modelPath, threads, {useMmap: false});
const context = await model.createContext({
  contextSize: promptTokens + decodeTokens + 16, batchSize: promptTokens, threads: {ideal: threads, min: threads}, sequences: 1, flashAttention: false,
});
const sequence = context.getSequence();
const vocabulary = 1000;
const tokens = (count) => Array.from({length: count}, (_, i) => 3 + ((i * 7919 + 1) % vocabulary));

async function prefill() {
  await sequence.clearHistory();
  const start = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(tokens(promptTokens));
  return (performance.now() - start) / 1000;
}

// Greedy decoding; the iterator's own end at a stop token does not apply, so exactly `count` tokens come.
async function decode(count) {
  const start = performance.now();
  let made = 0;
  for await (const _ of sequence.evaluate([5], {temperature: 0, yieldEogToken: true})) {
    if (++made >= count) break;
  }
  return (performance.now() - start) / 1000 / made;
}

await prefill();
await decode(8);
const result = {prefill_tokens_per_second: [], decode_tokens_per_second: []};
for (let run = 0; run < repeats; run++) {
  result.prefill_tokens_per_second.push(promptTokens / (await prefill()));
  result.decode_tokens_per_second.push(1 / (await decode(decodeTokens)));
}
console.log(JSON.stringify(result));
process.exit(0);
