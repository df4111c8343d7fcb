// What the tests share: synthetic models, figures, and where things are.
import { after } from 'node:test';
import { existsSync, readFileSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Model, Tokenizer } from 'proofinfer';

/** The root of the source tree, also where the package is tested elsewhere. */
export const source = process.env.PROOFINFER_SOURCE ?? join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
export const demo = (name) => join(source, 'reference', 'demo', name);

const models = process.env.PROOFINFER_MODELS ?? join(source, '..', 'shared', 'models');
export const realModel = (name) => join(models, name);
/** A reason to skip what needs the models that are not in the repository, or false. */
export const noRealModels =
  !existsSync(realModel('stories260K.bin')) && `SKIPPED[real-models]: no stories260K.bin in ${models} (PROOFINFER_MODELS names the folder)`;

export const goldenText = (name) => readFileSync(join(source, 'tests', 'data', 'golden', name), 'utf8');
export const golden = (name) => JSON.parse(goldenText(name));

/** A folder that is removed after the tests of this file. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'proofinfer-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// splitmix64 in 32-bit halves: BigInt would take minutes for the larger models.
class Stream {
  constructor(seed) {
    this.high = 0;
    this.low = seed >>> 0;
  }

  /** (draw >> 40) - 2^23, times 2^-23. */
  next() {
    const low = this.low + 0x7f4a7c15;
    this.low = low >>> 0;
    this.high = (this.high + 0x9e3779b9 + (low > 0xffffffff ? 1 : 0)) >>> 0;
    let h = this.high;
    let l = this.low;
    [h, l] = [h ^ (h >>> 30), l ^ ((l >>> 30) | (h << 2))];
    [h, l] = multiply(h, l, 0xbf58476d, 0x1ce4e5b9);
    [h, l] = [h ^ (h >>> 27), l ^ ((l >>> 27) | (h << 5))];
    [h, l] = multiply(h, l, 0x94d049bb, 0x133111eb);
    h ^= h >>> 31;
    return ((h >>> 8) - 2 ** 23) / 2 ** 23;
  }
}

/** The low 64 bits of a product, as two halves. */
function multiply(ah, al, bh, bl) {
  const [a0, a1] = [al & 0xffff, al >>> 16];
  const [b0, b1] = [bl & 0xffff, bl >>> 16];
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const carry = a0 * b1 + (middle % 0x10000);
  const high = a1 * b1 + Math.floor(middle / 0x10000) + Math.floor(carry / 0x10000);
  return [(high + Math.imul(ah, bl) + Math.imul(al, bh)) | 0, Math.imul(al, bl)];
}

/** The legacy checkpoint that tests/data/golden/README.md specifies: every weight from one splitmix64 stream. */
export function checkpoint(shape, seed) {
  const { dim, hidden_dim, n_layers, n_heads, n_kv_heads, seq_len } = shape;
  const vocab = Math.abs(shape.vocab_size);
  const head = dim / n_heads;
  const kv = n_kv_heads * head;
  const quarter = (r) => r / 4;
  const norm = (r) => 1 + r / 4;
  const matrix = (n) => (r) => r * 2 ** -Math.floor(Math.floor(Math.log2(n)) / 2);
  const parts = [
    [vocab * dim, quarter], [n_layers * dim, norm], [n_layers * dim * dim, matrix(dim)], [n_layers * kv * dim, matrix(dim)],
    [n_layers * kv * dim, matrix(dim)], [n_layers * dim * dim, matrix(dim)], [n_layers * dim, norm],
    [n_layers * hidden_dim * dim, matrix(dim)], [n_layers * dim * hidden_dim, matrix(hidden_dim)],
    [n_layers * hidden_dim * dim, matrix(dim)], [dim, norm], [seq_len * head, null],
  ];
  if (shape.vocab_size < 0) parts.push([vocab * dim, quarter]);
  const data = new Float32Array(7 + parts.reduce((sum, [count]) => sum + count, 0));
  new Int32Array(data.buffer, 0, 7).set([dim, hidden_dim, n_layers, n_heads, n_kv_heads, shape.vocab_size, seq_len]);
  const stream = new Stream(seed);
  let at = 7;
  for (const [count, value] of parts) {
    if (value) for (let i = 0; i < count; i++) data[at + i] = value(stream.next());
    at += count;
  }
  return new Uint8Array(data.buffer);
}

/** A tokenizer file. pieces: texts; the score of each is minus its index. */
export function tokenizerFile(pieces) {
  const parts = [Buffer.from(new Uint32Array([27]).buffer)];
  pieces.forEach((piece, i) => {
    const bytes = Buffer.from(piece);
    const head = Buffer.alloc(8);
    head.writeFloatLE(-i, 0);
    head.writeInt32LE(bytes.length, 4);
    parts.push(head, bytes);
  });
  return new Uint8Array(Buffer.concat(parts));
}

export const small = { dim: 64, hidden_dim: 172, n_layers: 2, n_heads: 4, n_kv_heads: 2, vocab_size: 512, seq_len: 256 };
export const smallCheckpoint = checkpoint(small, 5);

/** 512 pieces: three special ones, one for each byte, the printable characters, some longer ones. */
export const smallPieces = ['<unk>', '\n<s>\n', '\n</s>\n'];
for (let b = 0; b < 256; b++) smallPieces.push(`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);
for (let c = 32; c < 127; c++) smallPieces.push(String.fromCharCode(c));
smallPieces.push('é', '\u{1F999}', 'th', 'he', ' the');
while (smallPieces.length < 512) smallPieces.push(`piece${smallPieces.length}_`);
export const smallTokenizer = tokenizerFile(smallPieces);

/** The small model and its tokenizer; closed with the test. */
export async function smallWorld(t, options = {}) {
  const model = await Model.fromBytes(smallCheckpoint, options);
  const tokenizer = await Tokenizer.fromBytes(smallTokenizer, model);
  t.after(() => Promise.all([model.close(), tokenizer.close()]));
  return { model, tokenizer };
}

export const largeShape = { dim: 1024, hidden_dim: 2816, n_layers: 2, n_heads: 8, n_kv_heads: 8, vocab_size: 20000, seq_len: 2048 };

/** The path of a model of 190 MB: weights of a simple pattern, in the order of the file, norms included. */
export function largeModel(folder) {
  const { dim, hidden_dim, n_layers, vocab_size, seq_len, n_heads, n_kv_heads } = largeShape;
  const weights = vocab_size * dim + n_layers * (2 * dim + 4 * dim * dim + 3 * dim * hidden_dim) + dim + (seq_len * dim) / n_heads;
  const data = new Float32Array(7 + weights);
  for (let i = 7; i < data.length; i++) data[i] = (((Math.imul(i, 0x9e3779b1) >>> 8) / 2 ** 24) - 0.5) / 16;
  new Int32Array(data.buffer, 0, 7).set([dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len]);
  const path = join(folder, 'large.bin');
  writeFileSync(path, data);
  return path;
}

/** The text and the tokens of a generation. */
export async function collect(generation) {
  let text = '';
  const tokens = [];
  for await (const piece of generation) {
    text += piece.text;
    if (piece.token !== null) tokens.push(piece.token);
  }
  return { text, tokens };
}
