// Token ids of texts by llama.cpp (llama_cpp.mjs).
//   node llama_cpp_tokens.mjs MODEL.gguf TEXTS.json OUTPUT.json
// TEXTS: a list of [text, whether control pieces in it become their ids]; OUTPUT: a list of lists of ids, without BOS and EOS.
import {readFileSync, writeFileSync} from "node:fs";
import {loadModel} from "./llama_cpp.mjs";

const [modelPath, textsPath, outputPath] = process.argv.slice(2);
const texts = JSON.parse(readFileSync(textsPath, "utf8"));
const model = await loadModel(modelPath, 1, {vocabOnly: true});
const ids = texts.map(([text, special]) => Array.from(model.tokenize(text, special)));
writeFileSync(outputPath, JSON.stringify(ids));
process.exit(0);
