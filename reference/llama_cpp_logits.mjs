// Probabilities of every token after every position, by llama.cpp (llama_cpp.mjs): float32, positions x vocabulary, to a file.
//   node llama_cpp_logits.mjs MODEL.gguf TOKENS.json OUTPUT
import {readFileSync, writeFileSync} from "node:fs";
import {exactSequence, loadModel} from "./llama_cpp.mjs";

const [modelPath, tokensPath, outputPath] = process.argv.slice(2);
const tokens = JSON.parse(readFileSync(tokensPath, "utf8"));
const sequence = await exactSequence(await loadModel(modelPath, 1, {useMmap: false}), tokens.length + 8);
const plain = {temperature: 1, topK: 0, topP: 1, minP: 0};
const answers = await sequence.controlledEvaluate(tokens.map((token) => [token, {generateNext: {probabilities: true, options: plain}}]));
const rows = answers.map((answer) => {
  const row = new Float32Array(answer.next.probabilities.size);
  for (const [token, probability] of answer.next.probabilities) row[token] = probability;
  return Buffer.from(row.buffer);
});
writeFileSync(outputPath, Buffer.concat(rows));
process.exit(0);
