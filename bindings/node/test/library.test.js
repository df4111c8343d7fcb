// Where the library is looked for, and what is said when it is not there. Each case is a process of its own.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadLibrary } from 'proofinfer';
import { temporaryFolder } from './support.js';

const here = new URL('.', import.meta.url).pathname;
const folder = temporaryFolder();

/** What a program that calls loadLibrary(argument) prints, with PROOFINFER_LIBRARY set or not. */
function load(argument, variable) {
  const program = `
    import { LibraryError, ProofinferError, loadLibrary } from 'proofinfer';
    try {
      console.log('loaded ' + loadLibrary(${argument === undefined ? '' : JSON.stringify(argument)}));
    } catch (error) {
      console.log(error instanceof LibraryError && error instanceof ProofinferError, error.name, error.code, error.message);
    }`;
  const { PROOFINFER_LIBRARY: _, ...env } = process.env;
  if (variable !== undefined) env.PROOFINFER_LIBRARY = variable;
  return execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: here, env, encoding: 'utf8' }).trim();
}

/** A library from C text, or undefined without a compiler. */
function compile(name, text) {
  const path = join(folder, name);
  writeFileSync(`${path}.c`, text);
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-o', path, `${path}.c`]);
  return status === 0 ? path : undefined;
}

test('an explicit path wins, then the variable', () => {
  const path = loadLibrary();
  assert.equal(load(path, '/nowhere/other.so'), `loaded ${path}`);
  assert.equal(load(undefined, path), `loaded ${path}`);
});

test('a named place is the only one that is tried', () => {
  const wrong = load('/nowhere/lib.so');
  assert.match(wrong, /^true LibraryError ERR_PROOFINFER_LIBRARY libproofinfer cannot be loaded. Tried: the path that was given, \/nowhere\/lib\.so: no such file$/);
  assert.match(load(undefined, '/nowhere/lib.so'), /Tried: the environment variable PROOFINFER_LIBRARY, \/nowhere\/lib\.so: no such file$/);
});

test('without a name the package and the system are tried, and told', () => {
  const found = load();
  if (found.startsWith('loaded')) return;
  assert.match(found, /Tried: the package's own copy, .*native.*: no such file; the system's libraries, libproofinfer\.so\.1: .+/);
});

test('a file that is no library is told', () => {
  const path = join(folder, 'text.so');
  writeFileSync(path, 'this is text');
  assert.match(load(path), /Tried: the path that was given, .*text\.so: .+/);
});

test('another library and another version are told', (t) => {
  const other = compile('other.so', 'int nothing(void) { return 0; }');
  if (!other) return t.skip('SKIPPED[compiler]: no cc to make a wrong library with');
  assert.match(load(other), /other\.so has no function proofinfer_version_number: it is no libproofinfer 1\.x/);
  const newer = compile('newer.so', 'int proofinfer_version_number(void) { return 2003004; }');
  assert.match(load(newer), /newer\.so is libproofinfer 2\.3\.4, and this package needs version 1\.x/);
});
