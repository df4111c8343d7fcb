// Whatever way a process ends while the library works, it ends soon, with its own status and without a crash.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { largeModel, largeShape, smallCheckpoint, smallTokenizer, temporaryFolder } from './support.js';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = temporaryFolder();
const here = new URL('.', import.meta.url).pathname;
writeFileSync(join(folder, 'model.bin'), smallCheckpoint);
writeFileSync(join(folder, 'tokenizer.bin'), smallTokenizer);

/** Runs code in a process of its own: { status, signal, stderr, stdout, ms }. */
function runCode(code) {
  const program = `
    import { Model, Tokenizer } from 'proofinfer';
    const folder = ${JSON.stringify(folder)};
    const open = async () => {
      const model = await Model.open(folder + '/model.bin');
      const tokenizer = await Tokenizer.open(folder + '/tokenizer.bin', model);
      const session = await model.createSession();
      return session.generate(tokenizer, [1], { stopTokens: [] });
    };
    ${code}`;
  const begin = performance.now();
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ['--input-type=module', '-e', program], { cwd: here }, (error, stdout, stderr) =>
      resolve({ status: child.exitCode, signal: child.signalCode, stdout, stderr, ms: performance.now() - begin }),
    );
  });
}

const endings = {
  'exit in the middle of a generation': ['const g = await open(); for (let i = 0; i < 5; i++) await g.next(); g.next(); process.exit(7);', 7],
  'exit with several calls in flight':
    ['const all = await Promise.all([open(), open(), open()]); for (const g of all) g.next(); setTimeout(() => process.exit(7), 1);', 7],
  'the end of the program with live handles': ['const g = await open(); await g.next();', 0],
  'the end of the program while a call runs': ['const g = await open(); g.next();', 0],
  'an exception in the middle of a generation': ["const g = await open(); for await (const p of g) throw new Error('mine');", 1],
  'exit during the load': ["Model.open(folder + '/model.bin'); process.exit(7);", 7],
};

for (const [name, [code, status]] of Object.entries(endings)) {
  test(name, async () => {
    for (let round = 0; round < 5; round++) {
      const result = await runCode(code);
      assert.deepEqual([result.status, result.signal], [status, null], result.stderr);
    }
  });
}

test('exit does not wait for a long prompt', async (t) => {
  const path = largeModel(folder);
  const { stdout, status, signal, stderr } = await runCode(`
    const model = await Model.open(${JSON.stringify(path)});
    const session = await model.createSession({ contextLength: ${largeShape.seq_len} });
    session.append(new Int32Array(${largeShape.seq_len}));
    setTimeout(() => { console.log(Date.now()); process.exit(7); }, 300);`);
  const late = Date.now() - Number(stdout);
  assert.deepEqual([status, signal], [7, null], stderr);
  t.diagnostic(`the process ended ${late} ms after exit()`);
  assert.ok(late < 3000);
});
