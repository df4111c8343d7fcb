// What llama.cpp (llama_cpp.mjs) continues prompts with, always taking the most probable token.
//   node llama_cpp_greedy.mjs MODEL.gguf PROMPTS.json COUNT OUTPUT.json
// PROMPTS: a list of lists of ids; OUTPUT: for each at most COUNT ids, the token that ends an answer included.
import {readFileSync, writeFileSync} from "node:fs";
import {exactSequence, loadModel} from "./llama_cpp.mjs";

const [modelPath, promptsPath, count, outputPath] = process.argv.slice(2);
const prompts = JSON.parse(readFileSync(promptsPath, "utf8"));
const model = await loadModel(modelPath, 1, {useMmap: false});
const sequence = await exactSequence(model, Math.max(...prompts.map((ids) => ids.length)) + Number(count) + 8);
const answers = [];
for (const prompt of prompts) {
  await sequence.clearHistory();
  const answer = [];
  for await (const token of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    answer.push(token);
    if (answer.length >= Number(count) || model.isEogToken(token)) break;
  }
  answers.push(answer);
}
writeFileSync(outputPath, JSON.stringify(answers));
process.exit(0);
