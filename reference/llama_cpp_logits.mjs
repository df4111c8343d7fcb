// Probabilities of every token after every position, by llama.cpp through the npm package node-llama-cpp (tried: 3.21.1): float32, positions x
// vocabulary, to a file.
//   node llama_cpp_logits.mjs MODEL.gguf TOKENS.json OUTPUT
// The package is looked for from the current folder: npm install node-llama-cpp@3.21.1 --ignore-scripts
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import {readFileSync, writeFileSync} from "node:fs";
import path from "node:path";

const [modelPath, tokensPath, outputPath] = process.argv.slice(2);
const tokens = JSON.parse(readFileSync(tokensPath, "utf8"));
const require = createRequire(path.join(process.cwd(), "package.json"));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);

const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: path.resolve(modelPath), gpuLayers: 0, useMmap: false});
// Keys and values in float32: the default, float16, is no oracle for float32.
const context = await model.createContext({
  contextSize: tokens.length + 8, threads: {ideal: 1, min: 1}, sequences: 1, flashAttention: false,
  experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32",
});
const sequence = context.getSequence();
const plain = {temperature: 1, topK: 0, topP: 1, minP: 0};
const answers = await sequence.controlledEvaluate(tokens.map((token) => [token, {generateNext: {probabilities: true, options: plain}}]));
const rows = answers.map((answer) => {
  const row = new Float32Array(answer.next.probabilities.size);
  for (const [token, probability] of answer.next.probabilities) row[token] = probability;
  return Buffer.from(row.buffer);
});
writeFileSync(outputPath, Buffer.concat(rows));
process.exit(0);
