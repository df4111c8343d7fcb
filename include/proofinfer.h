/*
 * proofinfer.h - the C API of libproofinfer: Llama-family language models on a CPU, every output bit specified.
 *
 * Conventions, true for every function unless it says otherwise:
 *
 * - Status. A function that can fail returns an int32_t status: PROOFINFER_OK (0) or one of the PROOFINFER_E_ values. Its
 *   last parameter is a nullable `proofinfer_error **`. When it is not NULL it receives an owned error object on failure (free it
 *   with proofinfer_error_free) and NULL on success. Every failure has a message that says what, where, expected and found.
 * - Out-parameters that receive a handle or pointer are set to NULL on failure.
 * - Handles are opaque and reference-counted inside: they may be freed in any order (a session keeps its model alive), and a free
 *   that happens while another thread is inside a call on the handle takes effect when that call ends. Freeing NULL, or a
 *   handle of another kind, does nothing. Using a handle after freeing it, or freeing it twice, is undefined.
 * - Threads. `const` on a handle parameter means: may be called from many threads at once on that handle. Other functions want one
 *   thread at a time; for sessions, generations, batches, schedulers and streams a second thread gets PROOFINFER_E_BUSY instead of a race.
 * - Text in is (pointer, length in bytes), UTF-8, no terminating NUL needed; NUL bytes inside are ordinary. A NULL pointer is allowed
 *   only with length 0. Paths are UTF-8 text without NUL.
 * - Text and arrays out are (buffer, capacity, *needed): *needed always receives the full size. When the capacity is too small nothing
 *   is written to the buffer, nothing changes, PROOFINFER_E_BUFFER is returned and the call can be repeated. buffer may be NULL when
 *   capacity is 0. No terminating NUL is written.
 * - The library never prints, exits, aborts, throws, reads the environment or changes signal handlers, and starts no more threads than the
 *   option "threads" asks for. It saves, sets and restores the floating-point environment at every entry that computes.
 * - Token ids are int32_t in [0, vocab_size). Positions count from 0. Sizes ending in _bytes are bytes, in _count elements.
 *
 * The arithmetic behind the results is specified in docs/arithmetic.md.
 */
#ifndef PROOFINFER_H
#define PROOFINFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(PROOFINFER_STATIC)
#define PROOFINFER_API
#elif defined(_WIN32)
#if defined(PROOFINFER_BUILDING)
#define PROOFINFER_API __declspec(dllexport)
#else
#define PROOFINFER_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define PROOFINFER_API __attribute__((visibility("default")))
#else
#define PROOFINFER_API
#endif

/* ---- Version ---------------------------------------------------------------------------------------------------------------- */

/* The version of this header. Within one major version symbols are only added and keep their meaning. */
#define PROOFINFER_VERSION_MAJOR 1
#define PROOFINFER_VERSION_MINOR 0
#define PROOFINFER_VERSION_PATCH 0

/* major * 1000000 + minor * 1000 + patch, of the header a program was compiled with. */
#define PROOFINFER_VERSION_NUMBER (PROOFINFER_VERSION_MAJOR * 1000000 + PROOFINFER_VERSION_MINOR * 1000 + PROOFINFER_VERSION_PATCH)

/* The version number of the library that is loaded: compare with PROOFINFER_VERSION_NUMBER; the majors must be equal. */
PROOFINFER_API int32_t proofinfer_version_number(void);

/* The loaded library's version as text, for example "1.0.0". Static, NUL-terminated, never freed. */
PROOFINFER_API const char *proofinfer_version_text(void);

/* How the library was built: compiler, architecture, kernel sets compiled in. One line, static, NUL-terminated, never freed. */
PROOFINFER_API const char *proofinfer_build_text(void);

/* Expands to the pointer and the length of a string literal: proofinfer_options_set_i64(o, PROOFINFER_TEXT("threads"), 2, NULL). */
#define PROOFINFER_TEXT(literal) (literal), (sizeof(literal) - 1)

/* ---- Status codes (pinned values) --------------------------------------------------------------------------------------------- */

#define PROOFINFER_OK 0
/* An argument is out of its bounds: NULL where a handle is needed, a token id outside the vocabulary, an unknown option. */
#define PROOFINFER_E_ARGUMENT 1
/* Memory could not be had, from the system or from the caller's allocator. */
#define PROOFINFER_E_MEMORY 2
/* A memory limit that the caller set would be exceeded. */
#define PROOFINFER_E_LIMIT 3
/* The operating system refused: no such file, no permission, not a regular file, a read error, a file that shrank. */
#define PROOFINFER_E_IO 4
/* The bytes are no format that the library knows; the message says what they look like. */
#define PROOFINFER_E_UNRECOGNIZED 5
/* The format is known and the bytes end too early; the message names the first thing missing. */
#define PROOFINFER_E_TRUNCATED 6
/* The format is known and a value in it is invalid, or bytes follow its end. */
#define PROOFINFER_E_FORMAT 7
/* The file is well-formed and asks for something that this library does not do. */
#define PROOFINFER_E_UNSUPPORTED 8
/* The context (the session's room for positions) is full. */
#define PROOFINFER_E_CONTEXT 9
/* Another thread is inside this handle. */
#define PROOFINFER_E_BUSY 10
/* The operation was cancelled; nothing changed. */
#define PROOFINFER_E_CANCELLED 11
/* The caller's buffer is too small; *needed says what is needed. Nothing changed. */
#define PROOFINFER_E_BUFFER 12
/* Logits contain NaN or infinity where finite ones are needed. */
#define PROOFINFER_E_NOT_FINITE 13
/* The handle is not in the state that the call needs, for example logits that were not asked for. */
#define PROOFINFER_E_STATE 14
/* The library contradicts itself (a failed self-test). Please report it. */
#define PROOFINFER_E_INTERNAL 15

/* The name of a status code, for example "PROOFINFER_E_IO". Static, NUL-terminated; "PROOFINFER_E_?" for other values. */
PROOFINFER_API const char *proofinfer_status_name(int32_t status);

/* ---- Handles ------------------------------------------------------------------------------------------------------------------ */

typedef struct proofinfer_error proofinfer_error;           /* one failure: code and message */
typedef struct proofinfer_options proofinfer_options;       /* named settings for the create and open functions */
typedef struct proofinfer_cancel proofinfer_cancel;         /* stops an operation from outside and shows its progress */
typedef struct proofinfer_model proofinfer_model;           /* weights and shape; immutable, shared by threads and sessions */
typedef struct proofinfer_tokenizer proofinfer_tokenizer;   /* vocabulary; immutable, shared by threads */
typedef struct proofinfer_stream proofinfer_stream;         /* token ids -> whole UTF-8 characters */
typedef struct proofinfer_session proofinfer_session;       /* one sequence of tokens and its KV cache */
typedef struct proofinfer_batch proofinfer_batch;           /* many sessions of one model, evaluated in one pass */
typedef struct proofinfer_sampler proofinfer_sampler;       /* logits -> token id, with its random state */
typedef struct proofinfer_generation proofinfer_generation; /* session + tokenizer + sampler, pulled token by token */
typedef struct proofinfer_scheduler proofinfer_scheduler;   /* many generations of one model, advanced together */

/* ---- Errors ------------------------------------------------------------------------------------------------------------------- */

/* The status code of an error; PROOFINFER_OK for NULL. */
PROOFINFER_API int32_t proofinfer_error_code(const proofinfer_error *error);

/* The message of an error, NUL-terminated UTF-8 on one line, valid until the error is freed; "" for NULL. */
PROOFINFER_API const char *proofinfer_error_message(const proofinfer_error *error);

/* Frees an error object. NULL does nothing. */
PROOFINFER_API void proofinfer_error_free(proofinfer_error *error);

/* ---- Options ------------------------------------------------------------------------------------------------------------------
 * One options object can be passed to every function that takes options: each reads the options of its own scope and ignores the
 * others. The object is read during the call only; it may be changed or freed afterwards. NULL means: all defaults. The options
 * and their types, bounds and defaults can be listed (proofinfer_option_*):
 *
 *   name                 type    scope       meaning
 *   "threads"            i64     model       threads that compute, the caller's included; default 1
 *   "share_from_bytes"   u64     model       work that streams fewer bytes of weights or cache than this is done by one thread, as waking others
 *                                            would take longer; default 131072; bits do not depend on it
 *   "map"                i64     model       packed files: 1 (default): the file is mapped, and shared with other processes that map it; 0: it is
 *                                            read into memory; bits do not depend on it
 *   "verify"             i64     model       packed files: 1: all weights are read and compared with the fingerprint in the header; 0 (default):
 *                                            only those of files that are not mapped are
 *   "isa"                text    model,      "auto" or the name of a kernel set (proofinfer_isa_name); at a session or batch:
 *                                session,    overrides the model's; bits do not depend on it
 *                                batch,
 *                                scheduler, sampler
 *   "memory_limit_bytes" u64     model,      most memory the object may hold at once, itself included; 0 (default): no limit. While it is
 *                                tokenizer,  made it can hold more than afterwards: a model room to read rows, a tokenizer room to sort
 *                                session, sampler, batch, scheduler (with all that is submitted to it)
 *   "context_length"     i64     session     positions to reserve room for; 0 (default): min(the model's seq_len, 4096); at most seq_len
 *   "temperature"        f64     sampler     0 (default): greedy; else logits are divided by it
 *   "top_p"              f64     sampler     nucleus: (0, 1); 0 or 1: off; default 0.9
 *   "top_k"              i64     sampler     only the k largest; 0 (default): off
 *   "typical_p"          f64     sampler     locally typical: (0, 1); 0 (default) or 1: off
 *   "min_p"              f64     sampler     only those at least this share of the most probable; 0 (default): off
 *   "repetition_penalty" f64     sampler     logits of recent tokens are divided by it (multiplied where they are not positive); 1 (default): off
 *   "frequency_penalty"  f64     sampler     subtracted once for each time that a token is recent; 0 (default): off
 *   "presence_penalty"   f64     sampler     subtracted once if a token is recent; 0 (default): off
 *   "penalty_window"     i64     sampler     how many of the last tokens are recent; default 64
 *   "seed"               u64     sampler     initial state of the generator, used as it is (0 makes every draw 0); default 1
 *   "max_generations"    i64     scheduler   generations that it holds at once, 1 to 2048; default 64
 *   "prefill_chunk"      i64     scheduler   most prompt tokens that one step evaluates beside what is decoding, 1 to 2048; default 32
 *   "max_tokens"         i64     generation  most tokens to generate; 0 (default): until a stop token or the end of the context
 *   "stop_tokens"        tokens  generation  ids that end a generation; default: BOS for a tokenizer.bin, as the reference
 *                                does; of a GGUF file EOS, EOT, EOM and control pieces that are known ends of texts and turns
 *   "stop_strings"       texts   generation  texts that end a generation and are cut off; default: none
 *   "logprobs"           i64     generation  how many of the most probable tokens to keep for proofinfer_generation_logprobs; 0 (default): off
 */
#define PROOFINFER_OPTION_I64 1
#define PROOFINFER_OPTION_U64 2
#define PROOFINFER_OPTION_F64 3
#define PROOFINFER_OPTION_TEXT 4
#define PROOFINFER_OPTION_TOKENS 5
#define PROOFINFER_OPTION_TEXTS 6

/* Makes an options object with every option at its default. Errors: E_MEMORY. */
PROOFINFER_API int32_t proofinfer_options_create(proofinfer_options **options, proofinfer_error **error);
/* Frees an options object. NULL does nothing. */
PROOFINFER_API void proofinfer_options_free(proofinfer_options *options);

/* Set one option by name. Errors: E_ARGUMENT (unknown name, other type, value outside the bounds: the message names them),
 * E_MEMORY (tokens, texts). The object is unchanged on failure. */
PROOFINFER_API int32_t proofinfer_options_set_i64(proofinfer_options *options, const char *name, size_t name_bytes, int64_t value,
                                                  proofinfer_error **error);
PROOFINFER_API int32_t proofinfer_options_set_u64(proofinfer_options *options, const char *name, size_t name_bytes, uint64_t value,
                                                  proofinfer_error **error);
PROOFINFER_API int32_t proofinfer_options_set_f64(proofinfer_options *options, const char *name, size_t name_bytes, double value,
                                                  proofinfer_error **error);
PROOFINFER_API int32_t proofinfer_options_set_text(proofinfer_options *options, const char *name, size_t name_bytes, const char *value,
                                                   size_t value_bytes, proofinfer_error **error);
/* tokens: [count] ids, copied; count 0 sets the empty set; at most 1024. */
PROOFINFER_API int32_t proofinfer_options_set_tokens(proofinfer_options *options, const char *name, size_t name_bytes,
                                                     const int32_t *tokens, size_t count, proofinfer_error **error);

/* texts: the strings one after another, any bytes, copied; text_bytes: [count] the length of each, 1 to 1024; count 0 sets none; at most 64. */
PROOFINFER_API int32_t proofinfer_options_set_texts(proofinfer_options *options, const char *name, size_t name_bytes, const char *texts,
                                                    const size_t *text_bytes, size_t count, proofinfer_error **error);

/* Memory of objects made with these options comes from these two functions instead of the C library. allocate returns `bytes` bytes
 * aligned to `alignment` (a power of two, at most 4096), or NULL; release gets the same numbers back. Both may be called from any thread and
 * must outlive the objects. NULL for both goes back to the default. Errors: E_ARGUMENT (only one of them is NULL).
 * Error objects, options and cancels always use malloc. */
typedef void *(*proofinfer_allocate_function)(void *user, size_t bytes, size_t alignment);
typedef void (*proofinfer_release_function)(void *user, void *memory, size_t bytes, size_t alignment);
PROOFINFER_API int32_t proofinfer_options_set_allocator(proofinfer_options *options, proofinfer_allocate_function allocate,
                                                        proofinfer_release_function release, void *user, proofinfer_error **error);

/* The number of options, and for index in [0, count): name (static, NUL-terminated), PROOFINFER_OPTION_ type, default, lowest and highest
 * value as text, and scope as text ("model,session"). Texts are static; "" where the type has none. NULL or 0 outside the range. */
PROOFINFER_API size_t proofinfer_option_count(void);
PROOFINFER_API const char *proofinfer_option_name(size_t index);
PROOFINFER_API int32_t proofinfer_option_type(size_t index);
PROOFINFER_API const char *proofinfer_option_default(size_t index);
PROOFINFER_API const char *proofinfer_option_lowest(size_t index);
PROOFINFER_API const char *proofinfer_option_highest(size_t index);
PROOFINFER_API const char *proofinfer_option_scope(size_t index);

/* ---- Cancel and progress --------------------------------------------------------------------------------------------------------
 * A cancel is handed to one or more operations. A request stops those that run with it and those that are started with it until it is
 * reset; it touches no other. Use one per operation, or reset it in between. */

/* Makes a cancel in the not-requested state. Errors: E_MEMORY. */
PROOFINFER_API int32_t proofinfer_cancel_create(proofinfer_cancel **cancel, proofinfer_error **error);
/* Asks the operations that hold it to stop. Callable from any thread and from a signal handler. NULL does nothing. */
PROOFINFER_API void proofinfer_cancel_request(proofinfer_cancel *cancel);
/* Takes the request back and sets progress to 0 of 0. NULL does nothing. */
PROOFINFER_API void proofinfer_cancel_reset(proofinfer_cancel *cancel);
/* 1 if a request is pending, else 0 (0 for NULL). */
PROOFINFER_API int32_t proofinfer_cancel_requested(const proofinfer_cancel *cancel);
/* How far the operation that holds it is: bytes read for loading, tokens evaluated for appending. Both outputs are nullable;
 * total is 0 before an operation starts. Callable while it runs. */
PROOFINFER_API void proofinfer_cancel_progress(const proofinfer_cancel *cancel, uint64_t *done, uint64_t *total);
/* Frees a cancel. NULL does nothing. */
PROOFINFER_API void proofinfer_cancel_free(proofinfer_cancel *cancel);

/* ---- CPU kernels ----------------------------------------------------------------------------------------------------------------
 * The kernel sets compiled into the library, slowest first: index in [0, count). All give the same bits. */

PROOFINFER_API size_t proofinfer_isa_count(void);
/* "scalar", "sse2", "avx2", "avx512", "avx512vnni", "neon", "neondot". Static, NUL-terminated; NULL outside the range. */
PROOFINFER_API const char *proofinfer_isa_name(size_t index);
/* 1 if this CPU and operating system can run it, else 0. */
PROOFINFER_API int32_t proofinfer_isa_available(size_t index);

/* Runs a built-in model on every kernel set this CPU has and compares the logits with built-in figures, in milliseconds. Errors:
 * E_INTERNAL (the message names the kernel set), E_MEMORY. */
PROOFINFER_API int32_t proofinfer_selftest(proofinfer_error **error);

/* ---- Model ----------------------------------------------------------------------------------------------------------------------
 * Formats: llama2.c checkpoints: version 1 (float32) and version 2 (Q8_0 groups), known by their magic, and the legacy one (7 int32 header,
 * no magic), recognised by its exact size; GGUF files, versions 2 and 3, of the architecture "llama" with weights of the types F32, F16, BF16, Q8_0,
 * Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K (docs/gguf.md); and packed files, which proofinfer_convert writes: weights as they lie in memory, mapped instead of
 * read. Opening one takes the time to check its header, and processes that open the same file share one copy of it.
 *
 * A packed file that is mapped must be left as it is while a model uses it (replacing it by renaming another one over it is safe): a changed weight
 * changes results, and cutting the file kills the process at the next access. One to which all users may write is refused with E_IO. Files
 * of others whom you do not trust that far: option "map" 0. Mapped weights do not count as memory that the model holds. */

/* Opens the checkpoint at a path: checks everything, then reads the weights into the library's own memory. The file is closed again
 * before the call returns; later changes to it do no harm (but to a packed file that is mapped, see above).
 * options: scope model; nullable. cancel: nullable; progress in bytes.
 * Errors: E_ARGUMENT, E_IO, E_UNRECOGNIZED, E_TRUNCATED, E_FORMAT, E_UNSUPPORTED, E_MEMORY, E_LIMIT, E_CANCELLED. */
PROOFINFER_API int32_t proofinfer_model_open(const char *path, size_t path_bytes, const proofinfer_options *options,
                                             proofinfer_cancel *cancel, proofinfer_model **model, proofinfer_error **error);
/* The same from memory. data: [data_bytes], any alignment; copied, not kept. */
PROOFINFER_API int32_t proofinfer_model_open_memory(const void *data, size_t data_bytes, const proofinfer_options *options,
                                                    proofinfer_cancel *cancel, proofinfer_model **model, proofinfer_error **error);
/* Frees a model; its memory goes when its last session and batch are freed. NULL does nothing. */
PROOFINFER_API void proofinfer_model_free(proofinfer_model *model);

/* Integer properties of a model. */
#define PROOFINFER_MODEL_DIM 1
#define PROOFINFER_MODEL_HIDDEN_DIM 2
#define PROOFINFER_MODEL_N_LAYERS 3
#define PROOFINFER_MODEL_N_HEADS 4
#define PROOFINFER_MODEL_N_KV_HEADS 5
#define PROOFINFER_MODEL_VOCAB_SIZE 6
#define PROOFINFER_MODEL_SEQ_LEN 7
#define PROOFINFER_MODEL_HEAD_SIZE 8         /* dim / n_heads; of a GGUF file what it says */
#define PROOFINFER_MODEL_SHARED_CLASSIFIER 9 /* 1: the classifier is the embedding; 0: it has weights of its own */
#define PROOFINFER_MODEL_GROUP_SIZE 10       /* elements a quantization group of llama2.c's version 2; 0: another format */
#define PROOFINFER_MODEL_FILE_BYTES 11       /* bytes of the checkpoint */
#define PROOFINFER_MODEL_WEIGHT_BYTES 12     /* bytes of weights held in memory, padding included */
#define PROOFINFER_MODEL_MEMORY_BYTES 13     /* all memory that the model holds */
#define PROOFINFER_MODEL_PARAMETER_COUNT 14  /* weights in the file, each counted once */
#define PROOFINFER_MODEL_THREADS 15          /* threads that compute, the caller's included */
#define PROOFINFER_MODEL_IS_MAPPED 16        /* 1: the weights are a mapped packed file; 0: the model's own memory */
/* Reads an integer property. value: not NULL; 0 on failure. Errors: E_ARGUMENT. */
PROOFINFER_API int32_t proofinfer_model_get_i64(const proofinfer_model *model, int32_t property, int64_t *value, proofinfer_error **error);

/* Text properties of a model. */
#define PROOFINFER_MODEL_FORMAT \
  1 /* "llama2.c legacy", "llama2.c version 1", "llama2.c version 2", "proofinfer packed", "GGUF version 3", ... */
#define PROOFINFER_MODEL_ELEMENT_TYPE 2 /* of the matrices: "f32", "f16", "bf16", "q8_0", "q4_1", "q6_k", ...; "mixed": several */
#define PROOFINFER_MODEL_ISA 3          /* the kernel set in use */
/* A text property: static, NUL-terminated; NULL for another property or a NULL model. */
PROOFINFER_API const char *proofinfer_model_get_text(const proofinfer_model *model, int32_t property);

/* The tensors of the file in its order: index in [0, count). GGUF files have names of their own: "blk.3.attn_q.weight". A packed file has some of them in one matrix: "layers.3.qkv", "layers.3.w13". */
PROOFINFER_API size_t proofinfer_model_tensor_count(const proofinfer_model *model);
/* The name of a tensor, for example "layers.3.wq". Errors: E_ARGUMENT, E_BUFFER. */
PROOFINFER_API int32_t proofinfer_model_tensor_name(const proofinfer_model *model, size_t index, char *buffer, size_t capacity,
                                                    size_t *needed, proofinfer_error **error);
#define PROOFINFER_TENSOR_ROWS 1        /* outputs of a matrix; 1 for a vector */
#define PROOFINFER_TENSOR_COLUMNS 2     /* inputs of a matrix; length of a vector */
#define PROOFINFER_TENSOR_FILE_OFFSET 3 /* where its bytes begin */
#define PROOFINFER_TENSOR_FILE_BYTES 4  /* how many there are */
#define PROOFINFER_TENSOR_IS_QUANTIZED 5
/* An integer property of a tensor. Errors: E_ARGUMENT. */
PROOFINFER_API int32_t proofinfer_model_tensor_get_i64(const proofinfer_model *model, size_t index, int32_t property, int64_t *value,
                                                       proofinfer_error **error);

/* The element type of a tensor, as PROOFINFER_MODEL_ELEMENT_TYPE has it: static, NUL-terminated; NULL for another index or a NULL model. */
PROOFINFER_API const char *proofinfer_model_tensor_type(const proofinfer_model *model, size_t index);

/* The metadata of a GGUF file in its order: index in [0, count). Files of other formats have none: 0. */
PROOFINFER_API size_t proofinfer_model_metadata_count(const proofinfer_model *model);
/* The name of a key, for example "llama.block_count": bytes as the file has them. Errors: E_ARGUMENT, E_BUFFER. */
PROOFINFER_API int32_t proofinfer_model_metadata_key(const proofinfer_model *model, size_t index, char *buffer, size_t capacity,
                                                     size_t *needed, proofinfer_error **error);
/* The value of a key as text for people: a number in decimal, true or false, a text as it is up to 8192 bytes, of an array the first 8 elements; what is
 * left out is counted at the end. Bytes as the file has them: UTF-8 if it keeps to the format. Errors: E_ARGUMENT, E_BUFFER. */
PROOFINFER_API int32_t proofinfer_model_metadata_text(const proofinfer_model *model, size_t index, char *buffer, size_t capacity,
                                                      size_t *needed, proofinfer_error **error);

/* Checkpoint formats that can be written. */
#define PROOFINFER_FORMAT_LEGACY 0
#define PROOFINFER_FORMAT_VERSION_1 1
#define PROOFINFER_FORMAT_VERSION_2 2
#define PROOFINFER_FORMAT_PACKED 3 /* element type and group size of `from`; needs memory for all packed weights */
/* Writes the checkpoint at path `from` to path `to` in another format, row by row in little memory, under a temporary name that is renamed at
 * the end: `to` is whole or unchanged. group_size: 0 but for VERSION_2, where 0 means the largest power of two up to 64 that divides dim and
 * hidden_dim. Quantizing: scale = largest magnitude of the group / 127, q = w / scale rounded half to even. The legacy format's unused RoPE tables are
 * written as zeros. `from` may be a GGUF file whose weights are F32, F16 and BF16 (not for PACKED) if the format can say all that it does: epsilon 1e-5,
 * RoPE base 10000, no scaling, n_heads * head_size = dim; else E_UNSUPPORTED, which names the first thing that does not fit. `to` names nothing or a regular file, which is replaced and whose permissions stay. cancel: nullable; progress in bytes written.
 * Errors: those of proofinfer_model_open; E_ARGUMENT (format, group_size: the message says what would divide), E_NOT_FINITE (quantizing: names
 * tensor and row), E_IO (writing; `to` is a link, a device, a pipe or a directory). */
PROOFINFER_API int32_t proofinfer_convert(const char *from, size_t from_bytes, const char *to, size_t to_bytes, int32_t format,
                                          int32_t group_size, proofinfer_cancel *cancel, proofinfer_error **error);

/* ---- Tokenizer ------------------------------------------------------------------------------------------------------------------ */

/* Opens the tokenizer of a GGUF file (models `llama` and `gpt2`; docs/tokenizers.md lists the pre-tokenizers), or llama2.c's tokenizer.bin.
 * vocab_size (0 and up): how many pieces, usually the model's vocab_size. A tokenizer.bin has no count: that many, at least 1, are read; the file
 * must have them, further bytes are allowed and ignored. A GGUF file knows: 0 takes what it has, and where a model has more rows than that, the
 * further ids are empty control pieces.
 * Errors: E_ARGUMENT, E_IO, E_UNRECOGNIZED, E_TRUNCATED, E_FORMAT, E_UNSUPPORTED, E_MEMORY, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_tokenizer_open(const char *path, size_t path_bytes, int32_t vocab_size, const proofinfer_options *options,
                                                 proofinfer_tokenizer **tokenizer, proofinfer_error **error);
/* The same from memory. data: [data_bytes], copied, not kept. */
PROOFINFER_API int32_t proofinfer_tokenizer_open_memory(const void *data, size_t data_bytes, int32_t vocab_size,
                                                        const proofinfer_options *options, proofinfer_tokenizer **tokenizer,
                                                        proofinfer_error **error);
/* Frees a tokenizer. NULL does nothing. */
PROOFINFER_API void proofinfer_tokenizer_free(proofinfer_tokenizer *tokenizer);

/* The number of pieces, and the ids of the beginning and the end of a text; -1 for NULL. */
PROOFINFER_API int32_t proofinfer_tokenizer_vocab_size(const proofinfer_tokenizer *tokenizer);
PROOFINFER_API int32_t proofinfer_tokenizer_bos(const proofinfer_tokenizer *tokenizer);
PROOFINFER_API int32_t proofinfer_tokenizer_eos(const proofinfer_tokenizer *tokenizer);

/* Integer properties of a tokenizer. Ids are -1 where the file names none. */
#define PROOFINFER_TOKENIZER_BOS 1
#define PROOFINFER_TOKENIZER_EOS 2
#define PROOFINFER_TOKENIZER_EOT 3 /* end of a turn */
#define PROOFINFER_TOKENIZER_EOM 4 /* end of a message */
#define PROOFINFER_TOKENIZER_UNKNOWN 5
#define PROOFINFER_TOKENIZER_PADDING 6
#define PROOFINFER_TOKENIZER_ADD_BOS 7          /* 1: the model expects texts to begin with BOS */
#define PROOFINFER_TOKENIZER_ADD_EOS 8          /* 1: and to end with EOS */
#define PROOFINFER_TOKENIZER_ADD_SPACE_PREFIX 9 /* 1: encoding puts a space before a text */
/* Reads an integer property. value: not NULL; 0 on failure. Errors: E_ARGUMENT. */
PROOFINFER_API int32_t proofinfer_tokenizer_get_i64(const proofinfer_tokenizer *tokenizer, int32_t property, int64_t *value,
                                                    proofinfer_error **error);

/* Text properties of a tokenizer. */
#define PROOFINFER_TOKENIZER_MODEL 1 /* "llama2.c", "llama", "gpt2" */
#define PROOFINFER_TOKENIZER_PRE 2   /* the pre-tokenizer, as the file names it; "" but for gpt2 */
/* A text property: static, NUL-terminated; NULL for another property or a NULL tokenizer. */
PROOFINFER_API const char *proofinfer_tokenizer_get_text(const proofinfer_tokenizer *tokenizer, int32_t property);

/* The piece of an id (it may be any bytes) and its score (nullable; 0 where the file has none). A tokenizer.bin's pieces are as the file has them;
 * of `llama`, ordinary pieces have a space for U+2581; of `gpt2`, they are the bytes that their letters stand for.
 * Errors: E_ARGUMENT (id outside the vocabulary), E_BUFFER. */
PROOFINFER_API int32_t proofinfer_tokenizer_piece(const proofinfer_tokenizer *tokenizer, int32_t token, char *buffer, size_t capacity,
                                                  size_t *needed, float *score, proofinfer_error **error);

/* Kinds of pieces, numbered as GGUF files do. Those of a tokenizer.bin are all normal. */
#define PROOFINFER_PIECE_NORMAL 1
#define PROOFINFER_PIECE_UNKNOWN 2
#define PROOFINFER_PIECE_CONTROL 3
#define PROOFINFER_PIECE_USER_DEFINED 4
#define PROOFINFER_PIECE_UNUSED 5
#define PROOFINFER_PIECE_BYTE 6
/* The kind of a piece. kind: not NULL; 0 on failure. Errors: E_ARGUMENT (id outside the vocabulary). */
PROOFINFER_API int32_t proofinfer_tokenizer_piece_kind(const proofinfer_tokenizer *tokenizer, int32_t token, int32_t *kind,
                                                       proofinfer_error **error);

#define PROOFINFER_ENCODE_BOS 1u     /* put the BOS id first */
#define PROOFINFER_ENCODE_EOS 2u     /* put the EOS id last */
#define PROOFINFER_ENCODE_SPECIAL 4u /* control pieces spelled in the text become their ids; without it they stay text */
#define PROOFINFER_ENCODE_DEFAULT 8u /* BOS and EOS as the file says; of a tokenizer.bin, BOS */
/* Text to token ids. tokenizer.bin: as the reference does it, with a dummy space piece before a text that is not empty, one piece or byte pieces a
 * character, then merges by score. `llama`, `gpt2`: as llama.cpp does it; user-defined pieces in the text become their ids, and nothing but
 * PROOFINFER_ENCODE_SPECIAL makes text a control piece. flags: PROOFINFER_ENCODE_ bits. Near-linear in text_bytes.
 * The number of ids is at most text_bytes + 3, and one more for each special piece found in it: 2 * text_bytes + 3 are always enough.
 * Errors: E_ARGUMENT, E_BUFFER, E_FORMAT (the vocabulary lacks a piece that the text or a flag needs), E_MEMORY. */
PROOFINFER_API int32_t proofinfer_tokenizer_encode(const proofinfer_tokenizer *tokenizer, const char *text, size_t text_bytes,
                                                   uint32_t flags, int32_t *tokens, size_t capacity, size_t *needed,
                                                   proofinfer_error **error);

#define PROOFINFER_DECODE_SPELLED 1u /* the piece itself: "<0x0A>" instead of the byte, "<|im_end|>" instead of nothing */
/* The bytes of one id after the id `previous` (-1: none): after BOS one leading space is dropped where encoding puts one, a byte piece gives its
 * byte, and control, unknown and unused pieces of a GGUF file give none. The bytes may be part of a character: proofinfer_stream puts them
 * together. flags: PROOFINFER_DECODE_ bits.
 * Errors: E_ARGUMENT, E_BUFFER. */
PROOFINFER_API int32_t proofinfer_tokenizer_decode(const proofinfer_tokenizer *tokenizer, int32_t previous, int32_t token, uint32_t flags,
                                                   char *buffer, size_t capacity, size_t *needed, proofinfer_error **error);

/* ---- Chat: message lists to token ids -----------------------------------------------------------------------------------------------
 * A chat template says how the messages of system, user and assistant stand in a prompt. The library knows the templates of Llama 2, Llama 3, ChatML,
 * Zephyr (TinyLlama) and Mistral, and recognises the one that a GGUF file carries; no code of a template is ever executed (docs/chat.md).
 * What a message says stays text, whatever it spells: it cannot forge the template's control pieces. */

#define PROOFINFER_ROLE_SYSTEM 1
#define PROOFINFER_ROLE_USER 2
#define PROOFINFER_ROLE_ASSISTANT 3

/* The names of the known templates: index in [0, count). Static, NUL-terminated; NULL outside the range. */
PROOFINFER_API size_t proofinfer_chat_template_count(void);
PROOFINFER_API const char *proofinfer_chat_template_name(size_t index);
/* The name of the template that the tokenizer's file carries; NULL if it has none, or none that is known, or for NULL. */
PROOFINFER_API const char *proofinfer_chat_template(const proofinfer_tokenizer *tokenizer);

#define PROOFINFER_CHAT_ANSWER 1u /* what the assistant's next message begins with stands at the end: the ids are a prompt for it */
/* Messages to token ids, BOS in front where template or file ask for it. template_name: one of the known; with 0 bytes the file's. roles: [count]
 * PROOFINFER_ROLE_ values; contents: what the messages say, one after another; content_bytes: [count] the length of each, 0 and up. count: 1 and up. A
 * system message comes first; Llama 2 and Mistral want user and assistant by turns, the user first. flags: PROOFINFER_CHAT_ bits.
 * Errors: E_ARGUMENT (also a list that the template has no form for: the message says which message and why), E_UNSUPPORTED (template_name_bytes 0, and
 * the file has no template that is known: name one, or encode a whole prompt with proofinfer_tokenizer_encode), E_BUFFER, E_FORMAT (as
 * proofinfer_tokenizer_encode), E_MEMORY, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_chat_encode(const proofinfer_tokenizer *tokenizer, const char *template_name, size_t template_name_bytes,
                                              const int32_t *roles, const char *contents, const size_t *content_bytes, size_t count,
                                              uint32_t flags, int32_t *tokens, size_t capacity, size_t *needed, proofinfer_error **error);
/* The ids that end the assistant's message, for the option "stop_tokens": what the template ends a message with and EOS, at most 2.
 * Errors: E_ARGUMENT, E_UNSUPPORTED, E_BUFFER. */
PROOFINFER_API int32_t proofinfer_chat_stop_tokens(const proofinfer_tokenizer *tokenizer, const char *template_name,
                                                   size_t template_name_bytes, int32_t *tokens, size_t capacity, size_t *needed,
                                                   proofinfer_error **error);

/* ---- Stream: token ids to whole UTF-8 characters ----------------------------------------------------------------------------------
 * Emits only valid UTF-8: bytes of a character that is not complete are held back; every maximal part of bytes that can be no character
 * becomes one U+FFFD. A flush turns an incomplete character at the end into one U+FFFD. */

/* previous: the id before the first one pushed (-1: none). Keeps the tokenizer alive. Errors: E_ARGUMENT, E_MEMORY. */
PROOFINFER_API int32_t proofinfer_stream_create(const proofinfer_tokenizer *tokenizer, int32_t previous, proofinfer_stream **stream,
                                                proofinfer_error **error);
/* The text that this id completes; may be empty. On E_BUFFER the id is not taken and the call can be repeated. Allocates nothing.
 * Errors: E_ARGUMENT, E_BUFFER, E_BUSY. */
PROOFINFER_API int32_t proofinfer_stream_push(proofinfer_stream *stream, int32_t token, char *buffer, size_t capacity, size_t *needed,
                                              proofinfer_error **error);
/* The held-back rest (empty or U+FFFD); the stream is then as new, its previous id kept. Errors: E_BUFFER, E_BUSY. */
PROOFINFER_API int32_t proofinfer_stream_flush(proofinfer_stream *stream, char *buffer, size_t capacity, size_t *needed,
                                               proofinfer_error **error);
/* Frees a stream. NULL does nothing. */
PROOFINFER_API void proofinfer_stream_free(proofinfer_stream *stream);

/* ---- Session ---------------------------------------------------------------------------------------------------------------------- */

/* Makes an empty sequence with room for "context_length" positions, all reserved now; appending one token at a time allocates nothing.
 * Keeps the model alive. Errors: E_ARGUMENT, E_MEMORY, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_session_create(const proofinfer_model *model, const proofinfer_options *options,
                                                 proofinfer_session **session, proofinfer_error **error);
/* Makes another session that continues the same sequence: its tokens and, if they are kept, the logits of its last position. Both then go their
 * own ways, on any threads. No key or value is computed again: full pages of 64 positions are shared and only the last, partial one is copied, so that
 * the time does not grow with the positions held (but for their token ids). Appending at the end allocates nothing in either; appending after a
 * rewind to before the end of the shared pages needs memory for each page that is still shared (E_MEMORY and E_LIMIT of append and
 * proofinfer_batch_evaluate). A shared page counts for the session that made it; with an allocator of the caller's it is released when the last
 * session that holds it is freed.
 * options: scope session, "context_length" 0: that of `session`; NULL: context, allocator, limit and isa of `session`.
 * Errors: E_ARGUMENT (also "context_length" less than the positions held), E_MEMORY, E_LIMIT, E_BUSY. `session` is unchanged. */
PROOFINFER_API int32_t proofinfer_session_clone(proofinfer_session *session, const proofinfer_options *options, proofinfer_session **clone,
                                                proofinfer_error **error);
/* Writes what the session holds as bytes: its tokens, their keys and values and, if they are kept, the logits of the last position. Any session
 * of the same model can go on from them with the same bits: in another process, on another machine, with other options, from a file of another
 * format with the same weights. Equal states give equal bytes. The first use of a model here reads all its weights once, but for a packed file, whose
 * header has their fingerprint (compared where the file is read or verified). Not cancellable; the time is that of copying the bytes.
 * Errors: E_ARGUMENT, E_BUFFER (*needed bytes; 80 for an empty session), E_BUSY. */
PROOFINFER_API int32_t proofinfer_session_save(proofinfer_session *session, void *buffer, size_t capacity, size_t *needed,
                                               proofinfer_error **error);
/* Replaces what the session holds by a saved state, of which everything is checked before anything is replaced. Whoever can make a checksum can make
 * a state with any numbers in it: they change results, never memory safety. data: [data_bytes], any alignment, not kept.
 * Errors: E_UNRECOGNIZED, E_UNSUPPORTED (another version of the format), E_TRUNCATED, E_FORMAT (changed bytes), E_ARGUMENT (another model's: the
 * message says what differs), E_CONTEXT (more positions than the session has room for), E_MEMORY and E_LIMIT (pages shared with a clone), E_BUSY.
 * On failure the session is as before. */
PROOFINFER_API int32_t proofinfer_session_restore(proofinfer_session *session, const void *data, size_t data_bytes,
                                                  proofinfer_error **error);
/* Frees a session. NULL does nothing. */
PROOFINFER_API void proofinfer_session_free(proofinfer_session *session);

#define PROOFINFER_LOGITS_NONE 0 /* of no appended position */
#define PROOFINFER_LOGITS_LAST 1 /* of the last one */
#define PROOFINFER_LOGITS_ALL 2  /* of every one: count * vocab_size floats are kept until the next append */
/* Appends tokens: [count], evaluates them, and keeps the logits asked for; those of an earlier append are dropped. Any split of a
 * sequence into appends gives the same bits. count 0 does nothing and keeps the logits. cancel: nullable; progress in tokens.
 * Errors: E_ARGUMENT (an id outside the vocabulary: the message gives index and id), E_CONTEXT (not enough room: both numbers), E_BUSY, E_CANCELLED,
 * E_MEMORY and E_LIMIT (ALL, and pages shared with a clone). On failure the session is as before, its logits gone only after E_CANCELLED. */
PROOFINFER_API int32_t proofinfer_session_append(proofinfer_session *session, const int32_t *tokens, size_t count, int32_t logits,
                                                 proofinfer_cancel *cancel, proofinfer_error **error);
/* Appends tokens: [count], and tells how probable each was behind all before it: logprobs: [count] out, natural logarithms with the bits of
 * proofinfer_logits_logprobs; NaN for the first token of an empty session. The logits of the last token are kept, of the others those of a few at a
 * time: the memory does not grow with count. Any split into calls gives the same bits. A text's perplexity is the exponential of minus the mean.
 * cancel: nullable; progress in tokens. Errors: those of append, and E_NOT_FINITE. On failure the session is as before, its logits gone only after
 * E_CANCELLED and E_NOT_FINITE, and logprobs holds nothing of use. */
PROOFINFER_API int32_t proofinfer_session_score(proofinfer_session *session, const int32_t *tokens, size_t count, float *logprobs,
                                                proofinfer_cancel *cancel, proofinfer_error **error);
/* The same for many texts, each from the beginning of a sequence, evaluated together: several a pass over the weights, with the bits of each alone. tokens:
 * those of all texts, one text after another; counts: [text_count] how many are each one's (0 and up, at most the model's seq_len); logprobs: one float a
 * token out, NaN for the first of each text. Memory for the texts of one pass is taken and given back. options: "isa", "memory_limit_bytes" and the
 * allocator; nullable. cancel: nullable; progress in tokens. Errors: E_ARGUMENT, E_CONTEXT (names the text), E_NOT_FINITE, E_CANCELLED, E_MEMORY, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_model_score(const proofinfer_model *model, const int32_t *tokens, const size_t *counts, size_t text_count,
                                              const proofinfer_options *options, float *logprobs, proofinfer_cancel *cancel,
                                              proofinfer_error **error);
/* Copies the logits of a position: vocab_size floats, a NaN always as 0x7fc00000. capacity and needed count floats.
 * Errors: E_ARGUMENT (no such position), E_STATE (its logits were not asked for, or dropped since), E_BUFFER, E_BUSY. */
PROOFINFER_API int32_t proofinfer_session_logits(proofinfer_session *session, size_t position, float *buffer, size_t capacity,
                                                 size_t *needed, proofinfer_error **error);
/* The same without a copy: *logits points to *count floats inside the session, valid until the next append, rewind or free. */
PROOFINFER_API int32_t proofinfer_session_logits_view(proofinfer_session *session, size_t position, const float **logits, size_t *count,
                                                      proofinfer_error **error);
/* The number of tokens appended, and the number of positions there is room for; 0 for NULL. */
PROOFINFER_API size_t proofinfer_session_position(const proofinfer_session *session);
PROOFINFER_API size_t proofinfer_session_context_length(const proofinfer_session *session);
/* Copies the tokens appended so far: position ids. Errors: E_ARGUMENT, E_BUFFER, E_BUSY. */
PROOFINFER_API int32_t proofinfer_session_tokens(proofinfer_session *session, int32_t *tokens, size_t capacity, size_t *needed,
                                                 proofinfer_error **error);
/* Forgets everything from `position` on, so that the next token lands there. Logits of later positions are dropped.
 * Errors: E_ARGUMENT (beyond the current position: both numbers), E_BUSY. */
PROOFINFER_API int32_t proofinfer_session_rewind(proofinfer_session *session, size_t position, proofinfer_error **error);
/* All memory that the session holds, pages that it made and shares included; 0 for NULL. */
PROOFINFER_API uint64_t proofinfer_session_memory_bytes(const proofinfer_session *session);

/* ---- Batch: many sessions, one pass over the weights -------------------------------------------------------------------------------
 * The bits of each session are those of running alone. */

/* Room for up to max_rows tokens a pass (1 to 4096). Keeps the model alive. Errors: E_ARGUMENT, E_MEMORY, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_batch_create(const proofinfer_model *model, size_t max_rows, const proofinfer_options *options,
                                               proofinfer_batch **batch, proofinfer_error **error);
/* Queues one token for one session; a session may be queued several times: its tokens are appended in that order. wants_logits: 1 to keep the
 * logits of this token's position, 0 not to. Keeps the session alive until evaluate or clear.
 * Errors: E_ARGUMENT (another model's session, an id outside the vocabulary), E_STATE (max_rows reached), E_CONTEXT, E_BUSY. */
PROOFINFER_API int32_t proofinfer_batch_add(proofinfer_batch *batch, proofinfer_session *session, int32_t token, int32_t wants_logits,
                                            proofinfer_error **error);
/* Evaluates what is queued and empties the queue; then each session is as if its tokens had been appended to it alone.
 * Errors: E_BUSY (a session is in use elsewhere), E_STATE (a session no longer stands where it stood when it was queued), E_MEMORY, E_LIMIT,
 * E_CANCELLED. On failure no session's position has moved, the queue is kept, and kept logits are gone only after E_CANCELLED. */
PROOFINFER_API int32_t proofinfer_batch_evaluate(proofinfer_batch *batch, proofinfer_cancel *cancel, proofinfer_error **error);
/* Empties the queue. Errors: E_BUSY. */
PROOFINFER_API int32_t proofinfer_batch_clear(proofinfer_batch *batch, proofinfer_error **error);
/* Frees a batch. NULL does nothing. */
PROOFINFER_API void proofinfer_batch_free(proofinfer_batch *batch);

/* ---- Sampler ---------------------------------------------------------------------------------------------------------------------- */

/* A sampler for logits of vocab_size (1 and up) values. options: scope sampler. Errors: E_ARGUMENT, E_MEMORY, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_sampler_create(int32_t vocab_size, const proofinfer_options *options, proofinfer_sampler **sampler,
                                                 proofinfer_error **error);
/* Picks a token. logits: [count], count equal to vocab_size, not changed. The order: penalties, biases, mask and bans, top_k, temperature, typical_p, top_p,
 * min_p, one random number (docs/arithmetic.md). Temperature 0 takes the largest (lowest id on ties) of what mask and bans allow, uses no filter and
 * draws no number. The token joins the window of the penalties. No allocation. On failure nothing has changed and no number is drawn.
 * Errors: E_ARGUMENT, E_NOT_FINITE (names the first id whose logit is NaN or infinite), E_STATE (mask and bans allow no id), E_BUSY. */
PROOFINFER_API int32_t proofinfer_sampler_sample(proofinfer_sampler *sampler, const float *logits, size_t count, int32_t *token,
                                                 proofinfer_error **error);
/* Lets tokens of another origin join the window of the penalties: a prompt that is to count, say. tokens: [count], oldest first.
 * Errors: E_ARGUMENT (an id outside the vocabulary: none has joined), E_BUSY. */
PROOFINFER_API int32_t proofinfer_sampler_accept(proofinfer_sampler *sampler, const int32_t *tokens, size_t count,
                                                 proofinfer_error **error);
/* Adds a number to the logits of some tokens. It replaces all biases of before. tokens: [count], each once; biases: [count], finite; copied; count 0: none.
 * Errors: E_ARGUMENT, E_MEMORY, E_LIMIT, E_BUSY. On failure the biases are those of before. */
PROOFINFER_API int32_t proofinfer_sampler_set_bias(proofinfer_sampler *sampler, const int32_t *tokens, const float *biases, size_t count,
                                                   proofinfer_error **error);
/* Bans tokens: they are never picked. It replaces all bans of before. tokens: [count], copied; count 0: none.
 * Errors: E_ARGUMENT, E_MEMORY, E_LIMIT, E_BUSY. On failure the bans are those of before. */
PROOFINFER_API int32_t proofinfer_sampler_set_banned(proofinfer_sampler *sampler, const int32_t *tokens, size_t count,
                                                     proofinfer_error **error);
/* Allows only the tokens of a mask, until another one takes its place: before each token for a grammar. mask: [word_count] with word_count
 * (vocab_size + 31) / 32, copied; bit i % 32 of word i / 32 allows id i, further bits are ignored. word_count 0 lifts the mask. After the first mask, setting
 * one allocates nothing. A token that a generation is forced to yield is not held against it.
 * Errors: E_ARGUMENT, E_MEMORY, E_LIMIT, E_BUSY. On failure the mask is that of before. */
PROOFINFER_API int32_t proofinfer_sampler_set_mask(proofinfer_sampler *sampler, const uint32_t *mask, size_t word_count,
                                                   proofinfer_error **error);
/* Sets the generator's state, as the option "seed" does, and empties the window of the penalties; biases, bans and mask stay. Errors: E_ARGUMENT, E_BUSY. */
PROOFINFER_API int32_t proofinfer_sampler_reseed(proofinfer_sampler *sampler, uint64_t seed, proofinfer_error **error);
/* Frees a sampler. NULL does nothing. */
PROOFINFER_API void proofinfer_sampler_free(proofinfer_sampler *sampler);

/* Log-probabilities of the model's own distribution: the softmax of the logits as they are, before a sampler's temperature, filters, penalties and
 * limits. The same bits everywhere (docs/arithmetic.md); minus infinity where the logarithm of a probability is below all floats. Both allocate nothing
 * and may be called from any thread. logits: [count], 1 or more, finite. */

/* Of the tokens asked for. tokens: [token_count] ids below count; logprobs: [token_count] out. Errors: E_ARGUMENT, E_NOT_FINITE. */
PROOFINFER_API int32_t proofinfer_logits_logprobs(const float *logits, size_t count, const int32_t *tokens, size_t token_count,
                                                  float *logprobs, proofinfer_error **error);
/* Of the most probable tokens: tokens: [top_count] ids out, most probable first, lower ids first on ties; logprobs: [top_count] out, nullable; top_count: at
 * most count. Errors: E_ARGUMENT, E_NOT_FINITE. */
PROOFINFER_API int32_t proofinfer_logits_top(const float *logits, size_t count, size_t top_count, int32_t *tokens, float *logprobs,
                                             proofinfer_error **error);

/* ---- Generation: pull one token and its text at a time ------------------------------------------------------------------------------ */

#define PROOFINFER_STOP_NONE 0    /* not at the end yet */
#define PROOFINFER_STOP_TOKEN 1   /* a stop token came up; it is reported but gives no text and is not appended */
#define PROOFINFER_STOP_LENGTH 2  /* max_tokens reached */
#define PROOFINFER_STOP_CONTEXT 3 /* the session has no room for another token */
#define PROOFINFER_STOP_STRING 4  /* a stop string is complete (proofinfer_generation_stop_string); its token is reported, not appended */

/* Continues a session with a prompt. prompt: [prompt_count] ids, copied; with prompt_count 0 the session must hold tokens already, and the last one's
 * logits. Nothing is evaluated yet. The generation keeps session, tokenizer and sampler alive; the sampler's vocabulary must be the model's, the
 * tokenizer's at least that large. options: scope generation. Errors: E_ARGUMENT, E_STATE, E_CONTEXT (prompt longer than the room), E_MEMORY, E_BUSY. */
PROOFINFER_API int32_t proofinfer_generation_create(proofinfer_session *session, const proofinfer_tokenizer *tokenizer,
                                                    proofinfer_sampler *sampler, const int32_t *prompt, size_t prompt_count,
                                                    const proofinfer_options *options, proofinfer_generation **generation,
                                                    proofinfer_error **error);
/* Yields the next token and the text that it completes (whole UTF-8 characters, maybe empty). With stop strings, what may still become one is held back:
 * it comes when it can no longer, or with the end; of a stop string nothing comes. They are looked for in the bytes of the generated tokens, across their
 * borders; the first to be complete counts, of several at once the longest, of equal ones the first. The prompt is evaluated by the first call, each token by
 * the call after the one that yielded it. token: the id, or -1 when the generation has ended without one. stop_reason: PROOFINFER_STOP_NONE, or why
 * the generation ended; that call still gives the flushed rest of the text. After the end every call reports the end again with no text.
 * On E_BUFFER, E_CANCELLED and the others nothing is lost: the call can be repeated. No allocation. cancel: nullable.
 * Errors: E_ARGUMENT, E_BUFFER, E_CANCELLED, E_BUSY, E_NOT_FINITE, E_STATE (the session does not stand where the generation left it; one that
 * someone else moved away and back, to other tokens even, is gone on with). */
PROOFINFER_API int32_t proofinfer_generation_next(proofinfer_generation *generation, proofinfer_cancel *cancel, int32_t *token,
                                                  char *buffer, size_t capacity, size_t *needed, int32_t *stop_reason,
                                                  proofinfer_error **error);
/* Log-probabilities of the token that the last call yielded, if the option "logprobs" is not 0: its own, and those of the most probable tokens, as
 * proofinfer_logits_top gives them: tokens and logprobs: [capacity], *needed: how many, "logprobs" or vocab_size. For a token that was forced where logits
 * are not finite *logprob is NaN and *needed 0. Errors: E_ARGUMENT, E_STATE (no token was yielded yet, one is pending after E_BUFFER, or "logprobs" is 0),
 * E_BUFFER, E_BUSY. */
PROOFINFER_API int32_t proofinfer_generation_logprobs(proofinfer_generation *generation, float *logprob, int32_t *tokens, float *logprobs,
                                                      size_t capacity, size_t *needed, proofinfer_error **error);
/* Which of the option "stop_strings" ended the generation: *index from 0. Errors: E_ARGUMENT, E_STATE (none did), E_BUSY. */
PROOFINFER_API int32_t proofinfer_generation_stop_string(proofinfer_generation *generation, size_t *index, proofinfer_error **error);
/* Makes the next call yield this id instead of a sampled one; no random number is drawn for it, and a stop token ends as usual.
 * Errors: E_ARGUMENT, E_STATE (a token is pending after E_BUFFER, or the generation has ended), E_BUSY. */
PROOFINFER_API int32_t proofinfer_generation_force(proofinfer_generation *generation, int32_t token, proofinfer_error **error);
/* Frees a generation; the session keeps what was appended. NULL does nothing. */
PROOFINFER_API void proofinfer_generation_free(proofinfer_generation *generation);

/* ---- Scheduler: many generations, one pass over the weights a step --------------------------------------------------------------------
 * The caller turns the wheel: submit, then `step` and `next` in a loop on one thread. In a step every generation that decodes gets its next token, and
 * waiting prompts share "prefill_chunk" tokens, in turns. Generations join and leave at any step. Each one's tokens and text are byte for byte
 * those of running alone. A piece that is not taken holds back its own generation only.
 *
 *   while (proofinfer_scheduler_count(scheduler) > 0) {
 *     if (proofinfer_scheduler_step(scheduler, NULL, &row_count, &error) != PROOFINFER_OK) break;
 *     do {
 *       status = proofinfer_scheduler_next(scheduler, 0, &id, &token, text, capacity, &needed, &stop_reason, &error);
 *       if (status == PROOFINFER_E_BUFFER) text and capacity grow to `needed`; else if (id != 0) hand on the piece, or why it has ended
 *     } while (id != 0);
 *   }
 */

#define PROOFINFER_STOP_CANCELLED 5 /* proofinfer_scheduler_cancel */

/* Makes an empty scheduler. options: scope scheduler. Keeps model and tokenizer alive. Errors: E_ARGUMENT, E_MEMORY, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_scheduler_create(const proofinfer_model *model, const proofinfer_tokenizer *tokenizer,
                                                   const proofinfer_options *options, proofinfer_scheduler **scheduler,
                                                   proofinfer_error **error);
/* Submits a generation with a session and a sampler of its own, which the scheduler makes now, with its own allocator and within its memory limit; the
 * steps allocate nothing for it. prompt: [prompt_count] ids, 1 or more, copied. options: scopes session, sampler and generation, but for "isa",
 * "memory_limit_bytes" and the allocator; room is reserved for prompt_count + "max_tokens" positions where that is less than the context. *id: never 0 and
 * never given again. Callable during a step. Its log-probabilities, and which stop string ended it, cannot be asked for: proofinfer_scheduler_add takes
 * a generation that can. Errors: E_ARGUMENT, E_CONTEXT, E_STATE, E_MEMORY, E_LIMIT ("max_generations" reached, or the memory limit: the message says what is
 * needed at least and what is available; nothing is kept). */
PROOFINFER_API int32_t proofinfer_scheduler_submit(const proofinfer_scheduler *scheduler, const int32_t *prompt, size_t prompt_count,
                                                   const proofinfer_options *options, uint64_t *id, proofinfer_error **error);
/* The same with a generation of the caller's, which continues its session from where it stands. Its memory does not count here. Until it leaves, each
 * step moves it; between steps it can be used as always (a sampler's mask set, a token forced, logits read; what proofinfer_generation_next yields,
 * proofinfer_scheduler_next does not). A sampler that two generations share makes their bits depend on each other.
 * A generation, session or sampler that another thread is inside of waits for the next step. Added twice, its pieces come under either id.
 * Errors: E_ARGUMENT, E_LIMIT. */
PROOFINFER_API int32_t proofinfer_scheduler_add(const proofinfer_scheduler *scheduler, proofinfer_generation *generation, uint64_t *id,
                                                proofinfer_error **error);
/* Takes a generation out: what comes of it next is its end, PROOFINFER_STOP_CANCELLED, without the text that was held back. One that has left already is
 * left alone. Callable at any time from any thread. Errors: E_ARGUMENT (an id that was never given). */
PROOFINFER_API int32_t proofinfer_scheduler_cancel(const proofinfer_scheduler *scheduler, uint64_t id, proofinfer_error **error);
/* One pass over the weights: at most one token of each generation that decodes, or whose prompt has one token left, and "prefill_chunk" of longer
 * prompts. row_count (nullable): how many tokens were evaluated; 0 when every generation waits for its pieces to be taken. No allocation, but for pages
 * that an added generation's session shares with a clone. cancel: nullable. What is wrong with one generation ends that one: proofinfer_scheduler_next
 * tells it. Errors: E_ARGUMENT, E_BUSY, E_CANCELLED (nothing has moved, the logits that sessions kept are gone; the step can be repeated). */
PROOFINFER_API int32_t proofinfer_scheduler_step(proofinfer_scheduler *scheduler, proofinfer_cancel *cancel, size_t *row_count,
                                                 proofinfer_error **error);
/* Takes a piece of the generation `only` (0: of any, in turns): id, token, text and stop_reason as of proofinfer_generation_next, and *id whose it is; 0:
 * there is none now. With a stop_reason the generation has left, and its memory is given back. token is -1 at an end without a token.
 * Errors with *id 0: E_ARGUMENT, E_BUSY. E_BUFFER: the piece stays. Errors with *id != 0: why that generation has left, as if
 * proofinfer_generation_next had said so: E_NOT_FINITE, E_STATE, E_MEMORY, E_LIMIT. An id that has left or never was has none. No allocation. */
PROOFINFER_API int32_t proofinfer_scheduler_next(proofinfer_scheduler *scheduler, uint64_t only, uint64_t *id, int32_t *token, char *buffer,
                                                 size_t capacity, size_t *needed, int32_t *stop_reason, proofinfer_error **error);
/* The number of generations that have not left, and the memory that the scheduler holds for all it submits; 0 for NULL. */
PROOFINFER_API size_t proofinfer_scheduler_count(const proofinfer_scheduler *scheduler);
PROOFINFER_API uint64_t proofinfer_scheduler_memory_bytes(const proofinfer_scheduler *scheduler);
/* Frees a scheduler; added generations stay where they are. NULL does nothing. */
PROOFINFER_API void proofinfer_scheduler_free(proofinfer_scheduler *scheduler);

#ifdef __cplusplus
}
#endif

#endif /* PROOFINFER_H */
