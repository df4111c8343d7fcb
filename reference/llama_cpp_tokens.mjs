// Token ids of texts by llama.cpp through the npm package node-llama-cpp (tried: 3.21.1).
//   node llama_cpp_tokens.mjs MODEL.gguf TEXTS.json OUTPUT.json
// TEXTS: a list of [text, whether control pieces in it become their ids]; OUTPUT: a list of lists of ids, without BOS and EOS.
// The package is looked for from the current folder: npm install node-llama-cpp@3.21.1 --ignore-scripts
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import {readFileSync, writeFileSync} from "node:fs";
import path from "node:path";

const [modelPath, textsPath, outputPath] = process.argv.slice(2);
const texts = JSON.parse(readFileSync(textsPath, "utf8"));
const require = createRequire(path.join(process.cwd(), "package.json"));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);

const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: path.resolve(modelPath), gpuLayers: 0, vocabOnly: true});
const ids = texts.map(([text, special]) => Array.from(model.tokenize(text, special)));
writeFileSync(outputPath, JSON.stringify(ids));
process.exit(0);
