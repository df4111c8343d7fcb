// llama.cpp through the npm package node-llama-cpp (tried: 3.21.1), which is looked for from the current folder:
//   npm install node-llama-cpp@3.21.1 --ignore-scripts
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "package.json"));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);

// A model on the CPU; settings: of loadModel.
export async function loadModel(modelPath, threads, settings) {
  const llama = await getLlama({gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.error});
  return llama.loadModel({modelPath: path.resolve(modelPath), gpuLayers: 0, ...settings});
}

// A sequence of one thread with keys and values in float32: the default, float16, is no oracle for float32.
export async function exactSequence(model, positions) {
  const context = await model.createContext({
    contextSize: positions, threads: {ideal: 1, min: 1}, sequences: 1, flashAttention: false,
    experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32",
  });
  return context.getSequence();
}
