/// <reference lib="esnext.disposable" />
/** Runs Llama-family language models on a CPU with libproofinfer; every output bit is the same everywhere. */

/** One failure of the library. */
export class ProofinferError extends Error {
  readonly name: string;
  /** The status' name, for example "PROOFINFER_E_IO", or an ERR_PROOFINFER_ code of this package. */
  readonly code: string;
  /** The status' number; undefined for the codes of this package. */
  readonly status: number | undefined;
}
/** A handle was used after it was closed; code ERR_PROOFINFER_CLOSED. */
export class ClosedError extends ProofinferError {}
/** The library cannot be found or is of another major version; code ERR_PROOFINFER_LIBRARY. */
export class LibraryError extends ProofinferError {}
/** An AbortSignal stopped the operation; `cause` is the signal's reason. */
export class AbortError extends Error {
  readonly name: 'AbortError';
  readonly code: 'ABORT_ERR';
}

/**
 * Loads the library now and returns its path; otherwise the first use does. Tried are: `path`; the environment variable PROOFINFER_LIBRARY; the
 * package's own copy; the system's libraries. One of the first two is the only one that is tried.
 */
export function loadLibrary(path?: string): string;
/** The library's version, for example "1.0.0". */
export function version(): string;
/** How the library was built. */
export function build(): string;
/** Runs the library's built-in model on every kernel set of this CPU and compares it with built-in figures. */
export function selfTest(): Promise<void>;

export interface KernelSet {
  name: string;
  available: boolean;
}
/** The kernel sets of the library, slowest first. All give the same bits. */
export function kernelSets(): KernelSet[];

export interface OptionInfo {
  name: string;
  type: 'integer' | 'unsigned integer' | 'number' | 'string' | 'tokens';
  default: string;
  lowest: string;
  highest: string;
  scope: string[];
}
/** What the library can be told. */
export function options(): OptionInfo[];

/** How many calls of the library may run at the same time, and so how many threads of Node's pool it takes; 2 unless told otherwise. */
export function setMaxWorkers(count: number): void;
export function maxWorkers(): number;

export interface Abortable {
  /** Ends the operation with an AbortError; nothing has changed then. */
  signal?: AbortSignal | undefined;
}
export interface ModelOptions extends Abortable {
  /** Threads that compute; default 1. */
  threads?: number | undefined;
  /** Work that streams fewer bytes than this is done by one thread, as waking others would take longer; default 131072. */
  shareFromBytes?: number | bigint | undefined;
  /** Packed files: true (default) maps the file, which must not be cut while it is in use; false reads it into memory. */
  map?: boolean | undefined;
  /** Packed files: compare all weights with the fingerprint in the header; default false. */
  verify?: boolean | undefined;
  /** A kernel set's name, or "auto". The results do not depend on it. */
  isa?: string | undefined;
  /** Most bytes that the object may hold; 0: no limit. */
  memoryLimit?: number | bigint | undefined;
}
export interface TokenizerOptions extends Abortable {
  memoryLimit?: number | bigint | undefined;
}
export interface ChatOptions {
  /** One of chatTemplates(); default: that of the tokenizer's file. */
  template?: string | undefined;
}
export interface ScoreOptions extends Abortable {
  isa?: string | undefined;
  memoryLimit?: number | bigint | undefined;
}
export interface SessionOptions extends Abortable {
  /** Positions to reserve room for; 0 (default): the model's, at most 4096. */
  contextLength?: number | undefined;
  isa?: string | undefined;
  memoryLimit?: number | bigint | undefined;
}
export interface BatchOptions {
  isa?: string | undefined;
  memoryLimit?: number | bigint | undefined;
}
export interface SchedulerOptions {
  /** Generations that it holds at once, 1 to 2048; default 64. */
  maxGenerations?: number | undefined;
  /** Most prompt tokens that one pass evaluates beside what decodes, 1 to 2048; default 32. */
  prefillChunk?: number | undefined;
  isa?: string | undefined;
  /** Most bytes that it and its generations may hold; 0: no limit. */
  memoryLimit?: number | bigint | undefined;
}
export interface SamplerOptions {
  /** 0 (default): the likeliest token each time. */
  temperature?: number | undefined;
  /** Draw only among the likeliest tokens that have this probability together; 0 and 1: off; default 0.9. */
  topP?: number | undefined;
  /** Draw only among the k likeliest tokens; 0 (default): off. */
  topK?: number | undefined;
  /** Draw only among the tokens whose surprise is nearest to the expected one, as many as have this probability together; 0 (default) and 1: off. */
  typicalP?: number | undefined;
  /** Draw only among the tokens that are at least this share as likely as the likeliest; 0 (default): off. */
  minP?: number | undefined;
  /** Divides the logits of recent tokens, or multiplies them where they are not positive; 1 (default): off. */
  repetitionPenalty?: number | undefined;
  /** Subtracted from a token's logit for each time that it is recent; 0 (default): off. */
  frequencyPenalty?: number | undefined;
  /** Subtracted from the logit of each recent token; 0 (default): off. */
  presencePenalty?: number | undefined;
  /** How many of the last tokens are recent; default 64. */
  penaltyWindow?: number | undefined;
  /** Initial state of the random generator; default 1. */
  seed?: number | bigint | undefined;
  memoryLimit?: number | bigint | undefined;
}
export interface GenerationOptions extends Abortable {
  /** Most tokens to generate; 0 (default): until a stop token or the end of the context. */
  maxTokens?: number | undefined;
  /** Ids that end the generation; [] lets nothing end it; default: what the tokenizer's format says. */
  stopTokens?: Iterable<number> | undefined;
  /** Texts that end the generation and are cut off; what may still become one is held back; default: none. */
  stopStrings?: readonly (string | Uint8Array)[] | undefined;
  /** How many of the most probable tokens each piece tells; 0 (default): none, and no log-probability. */
  logprobs?: number | undefined;
}

/** What all handles have in common. Closing twice, in any order and during work does no harm; use after it is a ClosedError. */
interface Handle extends AsyncDisposable, Disposable {
  /** True after close() was called. */
  readonly closed: boolean;
  /** Frees the object when the work in flight has ended, and resolves then. */
  close(): Promise<void>;
}

export interface ModelInfo {
  readonly format: string;
  readonly elementType: string;
  readonly isa: string;
  readonly dim: number;
  readonly hiddenDim: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly vocabSize: number;
  readonly seqLen: number;
  readonly headSize: number;
  readonly sharedClassifier: boolean;
  readonly groupSize: number;
  readonly fileBytes: number;
  readonly weightBytes: number;
  readonly memoryBytes: number;
  readonly parameterCount: number;
  readonly threads: number;
  /** The weights are a mapped packed file, shared with other processes. */
  readonly mapped: boolean;
}
export interface Tensor {
  name: string;
  rows: number;
  columns: number;
  fileOffset: number;
  fileBytes: number;
  quantized: boolean;
  type: string;
}
type Bytes = ArrayBufferView | ArrayBuffer | SharedArrayBuffer;

export type Format = 'legacy' | 'version 1' | 'version 2' | 'packed';
/**
 * Writes the checkpoint at path `from` to path `to` in another format ('version 2' is Q8_0, 'packed' is to be mapped); `to` is whole or unchanged afterwards. groupSize: 0 but
 * for 'version 2', where 0 (default) means the largest power of two up to 64 that fits.
 */
export function convert(from: string, to: string, format: Format, options?: { groupSize?: number } & Abortable): Promise<void>;

/** Weights and shape: immutable, shared by sessions. Sessions keep what they need of it. */
export class Model {
  private constructor();
  /** Loads the checkpoint at a path. */
  static open(path: string, options?: ModelOptions): Promise<Model>;
  /** Loads a checkpoint from memory, which must stay as it is (neither written nor transferred) until the promise settles. */
  static fromBytes(data: Bytes, options?: ModelOptions): Promise<Model>;
  readonly info: ModelInfo;
  readonly vocabSize: number;
  /** The tensors of the checkpoint in file order. */
  tensors(): Tensor[];
  /** The keys of a GGUF file and their values as text, long ones cut; empty for other formats. */
  metadata(): Map<string, string>;
  /** Makes an empty session. */
  createSession(options?: SessionOptions): Promise<Session>;
  /** Makes a batch with room for maxRows tokens a pass, 1 to 4096. */
  createBatch(maxRows: number, options?: BatchOptions): Batch;
  /**
   * The logarithms of the probabilities of the tokens of many texts, each behind all before it; NaN for the first of each text. They are evaluated
   * together, several in a pass, with the bits of each alone.
   */
  score(texts: Iterable<Iterable<number>>, options?: ScoreOptions): Promise<Float32Array[]>;
  /** Makes a scheduler for generations with a tokenizer. */
  createScheduler(tokenizer: Tokenizer, options?: SchedulerOptions): Scheduler;
}
export interface Model extends Handle {}

/** What a piece is for. Those of a tokenizer.bin are all normal. */
export type PieceKind = 'normal' | 'unknown' | 'control' | 'user-defined' | 'unused' | 'byte';

export interface EncodeOptions {
  /** Put the id that begins a text first. Default: as the file says (a tokenizer.bin: true). */
  bos?: boolean;
  /** Put the id that ends a text last. Default: as the file says (a tokenizer.bin: false). */
  eos?: boolean;
  /** Control pieces spelled in the text become their ids. Default: they stay text. */
  special?: boolean;
}

/** What a tokenizer says of itself. Ids are -1 where the file names none. */
export interface TokenizerInfo {
  /** The kind of vocabulary: "llama2.c", "llama" or "gpt2". */
  readonly model: string;
  /** How a text is cut into words, as the file names it; empty but for "gpt2". */
  readonly preTokenizer: string;
  readonly bos: number;
  readonly eos: number;
  /** The end of a turn. */
  readonly eot: number;
  /** The end of a message. */
  readonly eom: number;
  readonly unknown: number;
  readonly padding: number;
  /** Whether the model expects texts to begin with BOS, to end with EOS. */
  readonly addBos: boolean;
  readonly addEos: boolean;
  /** Whether encoding puts a space before a text. */
  readonly addSpacePrefix: boolean;
}

/** Vocabulary: immutable, shared. */
export class Tokenizer {
  private constructor();
  /**
   * Opens the tokenizer of a GGUF file, or a tokenizer.bin of llama2.c. vocabSize: how many pieces to read, or the model that it is for. A
   * tokenizer.bin has no count of its own; of a GGUF file 0, the default, takes all.
   */
  static open(path: string, vocabSize?: number | Model, options?: TokenizerOptions): Promise<Tokenizer>;
  static fromBytes(data: Bytes, vocabSize?: number | Model, options?: TokenizerOptions): Promise<Tokenizer>;
  readonly info: TokenizerInfo;
  readonly vocabSize: number;
  readonly bos: number;
  readonly eos: number;
  /** Text to token ids. A Uint8Array is taken as UTF-8. */
  encode(text: string | Uint8Array, options?: EncodeOptions & Abortable): Promise<Int32Array>;
  /** The same at once, for short texts. */
  encodeSync(text: string | Uint8Array, options?: EncodeOptions): Int32Array;
  /** Token ids to text. A BOS that begins them gives none. */
  decode(tokens: Iterable<number>): string;
  /** The bytes of one id after the id `previous`; they may be part of a character. spelled: the piece itself, "<0x0A>". */
  decodeToken(token: number, options?: { previous?: number; spelled?: boolean }): Uint8Array;
  /** The piece of an id: what it is in a text, its score and its kind. */
  piece(token: number): { bytes: Uint8Array; score: number; kind: PieceKind };
  /** A stream that turns ids into whole characters as they come. previous: the id before the first one. */
  createStream(previous?: number): Stream;
}
export interface Tokenizer extends Handle {}

/** What somebody says in a chat. */
export interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string | Uint8Array;
}
/** The names of the chat templates that are known. */
export function chatTemplates(): string[];
/** The name of the chat template that the tokenizer's file carries; null if it has none, or none that is known. */
export function chatTemplate(tokenizer: Tokenizer): string | null;
/**
 * Messages to token ids. What a message says stays text, whatever it spells. template: one of chatTemplates(); default: the file's. answer (default
 * true): what the assistant's next message begins with stands at the end, so that the ids are a prompt for it.
 */
export function encodeChat(tokenizer: Tokenizer, messages: Iterable<Message>, options?: { template?: string | undefined; answer?: boolean }): Int32Array;
/** The ids that end the assistant's message. */
export function chatStopTokens(tokenizer: Tokenizer, template?: string): Int32Array;
/** The exponential of minus the mean of a text's scores; NaN among them (first tokens) does not count. NaN where nothing does. */
export function perplexity(logprobs: Iterable<number>): number;

/** Token ids to whole UTF-8 characters. */
export class Stream {
  private constructor();
  /** The text that this id completes; may be empty. */
  push(token: number): string;
  /** What is held back: nothing, or U+FFFD for an incomplete character. */
  flush(): string;
}
export interface Stream extends Handle {}

/**
 * One sequence of tokens and its KV cache. Calls that return promises wait for each other; the others fail with PROOFINFER_E_BUSY while one of
 * those runs.
 */
export class Session {
  private constructor();
  readonly contextLength: number;
  readonly position: number;
  readonly memoryBytes: number;
  /** A copy of the tokens appended so far. */
  readonly tokens: Int32Array;
  /**
   * Makes another session that holds the same tokens, and the logits of the last one if they are kept. Keys and values are shared until one of the
   * two overwrites them. Without options it has this session's settings; with some, the defaults for the others, but for contextLength.
   */
  clone(options?: SessionOptions): Promise<Session>;
  /** What the session holds as bytes, for restore() here, in another process or on another machine. Equal states give equal bytes. */
  save(options?: Abortable): Promise<Uint8Array>;
  /** Replaces what the session holds by a saved state, which must stay as it is until the promise settles. On failure nothing changes. */
  restore(state: Bytes, options?: Abortable): Promise<void>;
  /** Evaluates tokens and keeps the logits asked for (default: the last position's). On failure the session is as before. */
  append(tokens: Iterable<number>, options?: { logits?: 'none' | 'last' | 'all' } & Abortable): Promise<void>;
  /**
   * Appends tokens and tells the logarithm of the probability of each behind all before it; NaN for the first token of an empty session. On
   * failure the session is as before.
   */
  score(tokens: Iterable<number>, options?: Abortable): Promise<Float32Array>;
  /** Copies the logits of a position, by default the last one, into a new array or the one given. */
  logits(position?: number, into?: Float32Array): Float32Array;
  /** Forgets everything from position on. */
  rewind(position: number): void;
  /** Continues the session with a prompt. Nothing is evaluated before the first piece is asked for. */
  generate(tokenizer: Tokenizer, prompt: Iterable<number>, options?: GenerationOptions & SamplerOptions): Generation;
  generate(tokenizer: Tokenizer, prompt: Iterable<number>, options: GenerationOptions & { sampler: Sampler }): Generation;
  /**
   * The assistant's answer to a list of messages. What the session shares with the list is kept, so that a conversation that grows is evaluated
   * where it is new only. stopTokens default to chatStopTokens().
   */
  chat(tokenizer: Tokenizer, messages: Iterable<Message>, options?: ChatOptions & GenerationOptions & SamplerOptions): Generation;
  chat(tokenizer: Tokenizer, messages: Iterable<Message>, options: ChatOptions & GenerationOptions & { sampler: Sampler }): Generation;
}
export interface Session extends Handle {}

/** Tokens of many sessions in one pass over the weights; the bits of each session are those of running alone. */
export class Batch {
  private constructor();
  /** Queues one token for a session. logits (default true): keep those of this token's position. */
  add(session: Session, token: number, options?: { logits?: boolean }): void;
  /** Evaluates what is queued and empties the queue. On failure no session has moved and the queue is kept. */
  evaluate(options?: Abortable): Promise<void>;
  /** Empties the queue. */
  clear(): void;
}
export interface Batch extends Handle {}

/** Picks tokens from logits and holds the random state. */
export class Sampler {
  private constructor();
  static create(vocabSize: number, options?: SamplerOptions): Sampler;
  sample(logits: Float32Array): number;
  /** Sets the random state, as the option seed does, and empties the window of the penalties. */
  reseed(seed: number | bigint): void;
  /** Lets tokens of another origin, a prompt say, join the window of the penalties, oldest first. */
  accept(tokens: Iterable<number>): void;
  /** Adds numbers to the logits of some tokens, in place of all biases of before. */
  setBias(biases: Iterable<readonly [token: number, bias: number]>): void;
  /** Bans tokens, in place of those banned before: they are never picked. */
  setBanned(tokens: Iterable<number>): void;
  /**
   * Allows only the tokens of a mask, until another one takes its place: before each token for a grammar. Bit i % 32 of word i / 32 allows id i;
   * there are ceil(vocabSize / 32) words. null lifts the mask.
   */
  setMask(mask: Uint32Array | null): void;
}
export interface Sampler extends Handle {}

export interface TokenLogprob {
  token: number;
  /** The logarithm of its probability by the model's own distribution: the softmax of the logits as they are. */
  logprob: number;
}
/** The log-probabilities of tokens. */
export function logprobs(logits: Float32Array, tokens: Iterable<number>): number[];
/** The most probable tokens, most probable first. */
export function topLogprobs(logits: Float32Array, count: number): TokenLogprob[];

export type StopReason = 'token' | 'length' | 'context' | 'string';
export interface Piece {
  /** The id, or null when the generation ended without one. */
  token: number | null;
  /** The text that the token completes: whole characters, maybe none. */
  text: string;
  /** Why this is the last piece, or null. */
  stopReason: StopReason | null;
  /** With the option logprobs: the token's log-probability; NaN for one that was forced where the logits are not finite. */
  logprob?: number;
  /** With the option logprobs: the most probable tokens in its place. */
  topLogprobs?: TokenLogprob[];
}

/**
 * An async iterator of pieces. It ends after the piece with a stopReason and is closed then, as it is by a break. After an error
 * nothing is lost: next() goes on, or close() frees it.
 */
export class Generation implements AsyncIterableIterator<Piece> {
  private constructor();
  readonly stopReason: StopReason | null;
  /** The one of stopStrings that ended the generation, or null. */
  readonly stopString: string | Uint8Array | null;
  next(): Promise<IteratorResult<Piece, undefined>>;
  return(value?: unknown): Promise<IteratorResult<Piece, undefined>>;
  [Symbol.asyncIterator](): this;
  /** Makes the next piece this token instead of a sampled one. */
  force(token: number): void;
}
export interface Generation extends Handle {}

/**
 * Runs many generations of one model together: each pass over the weights gives a token to every one that decodes, and the tokens and text of each are
 * those of running alone. Passes run on a pool thread while there is work.
 */
export class Scheduler {
  private constructor();
  /** How many generations have not left. */
  readonly count: number;
  readonly memoryBytes: number;
  /** Hands in a prompt. PROOFINFER_E_LIMIT: the scheduler is full, or its memory; the message says what is needed and available. */
  submit(
    prompt: Iterable<number>,
    options?: GenerationOptions & SamplerOptions & { contextLength?: number | undefined },
  ): Promise<Job>;
  /**
   * Hands in a generation made with session.generate, which goes on where it stands: that of a cloned or restored session, or one whose sampler has
   * biases or a mask. Until it leaves, its session must not be moved. Its own signal does not count.
   */
  add(generation: Generation, options?: Abortable): Job;
}
export interface Scheduler extends Handle {}

/** One generation in a scheduler: an async iterator of pieces. A break cancels it, as its signal and close() do. */
export class Job implements AsyncIterableIterator<Piece> {
  private constructor();
  readonly stopReason: StopReason | null;
  next(): Promise<IteratorResult<Piece, undefined>>;
  return(value?: unknown): Promise<IteratorResult<Piece, undefined>>;
  [Symbol.asyncIterator](): this;
  /** Cancels what is left, and resolves when its memory has been given back. */
  close(): Promise<void>;
}
