// Every JavaScript example of README.md runs and ends well.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { demo } from './support.js';

const packageFile = createRequire(import.meta.url).resolve('proofinfer/package.json');
const readme = readFileSync(join(dirname(packageFile), 'README.md'), 'utf8');
const examples = Array.from(readme.matchAll(/^```js\n(.*?)^```$/gms), (match) => match[1]);

test('the examples are found', () => assert.ok(examples.length >= 4));

examples.forEach((example, i) => {
  test(`example ${i + 1}: ${example.split('\n', 1)[0]}`, (t) => {
    // In the test folder, so that the package is found as the tests find it.
    const folder = mkdtempSync(join(new URL('.', import.meta.url).pathname, 'example-'));
    t.after(() => rmSync(folder, { recursive: true }));
    copyFileSync(demo('demo.bin'), join(folder, 'demo.bin'));
    copyFileSync(demo('demo_tokenizer.bin'), join(folder, 'demo_tokenizer.bin'));
    writeFileSync(join(folder, 'example.mjs'), example);
    const output = execFileSync(process.execPath, ['example.mjs'], { cwd: folder, encoding: 'utf8' });
    assert.notEqual(output, '');
  });
});
