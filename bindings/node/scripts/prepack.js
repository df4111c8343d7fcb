// Copies the library and the licence into the package. PROOFINFER_PREFIX: where the library is installed; otherwise pkg-config says.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const file = process.platform === 'darwin' ? 'libproofinfer.1.dylib' : 'libproofinfer.so.1';

function libraryFolder() {
  const prefix = process.env.PROOFINFER_PREFIX;
  if (!prefix) return execFileSync('pkg-config', ['--variable=libdir', 'proofinfer'], { encoding: 'utf8' }).trim();
  const folders = ['lib', 'lib64', `lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`].map((name) => join(prefix, name));
  const found = folders.find((folder) => existsSync(join(folder, file)));
  if (!found) throw new Error(`PROOFINFER_PREFIX=${prefix}: no ${file} in ${folders.join(', ')}`);
  return found;
}

const target = join(root, 'native', `${process.platform}-${process.arch}`);
rmSync(join(root, 'native'), { recursive: true, force: true });
mkdirSync(target, { recursive: true });
copyFileSync(realpathSync(join(libraryFolder(), file)), join(target, file));
copyFileSync(join(root, '..', '..', 'LICENSE'), join(root, 'LICENSE'));
