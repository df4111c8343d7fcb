/* A C program that visits every part of the API: api_tour MODEL TOKENIZER. It is what Valgrind watches. Prints one line, exits 0 if all is well. */
#include <proofinfer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMPT "the ab."

static size_t g_held_blocks;

static void *allocate(void *user, size_t bytes, size_t alignment) {
  void *memory = NULL;
  (void)user;
  if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0) return NULL;
  g_held_blocks++;
  return memory;
}

static void release(void *user, void *memory, size_t bytes, size_t alignment) {
  (void)user, (void)bytes, (void)alignment;
  g_held_blocks--;
  free(memory);
}

/* Ends the program unless `condition` holds. */
static void check(int condition, const char *what, proofinfer_error *error) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, proofinfer_error_message(error));
  exit(1);
}

#define DO(call) check((call) == PROOFINFER_OK, #call, error)

static void refuse_bad_things(const proofinfer_model *model) {
  proofinfer_error *error = NULL;
  proofinfer_model *none = NULL;
  int64_t value = 0;
  check(proofinfer_model_open(PROOFINFER_TEXT("/nonexistent"), NULL, NULL, &none, &error) == PROOFINFER_E_IO, "a missing file", error);
  check(!none && proofinfer_error_code(error) == PROOFINFER_E_IO && proofinfer_error_message(error)[0], "its error", error);
  proofinfer_error_free(error);
  check(proofinfer_model_open_memory("junk", 4, NULL, NULL, &none, &error) != PROOFINFER_OK, "junk", error);
  proofinfer_error_free(error);
  check(proofinfer_model_get_i64(model, -1, &value, NULL) == PROOFINFER_E_ARGUMENT, "a wrong property", NULL);
}

static void look_at_model(const proofinfer_model *model) {
  proofinfer_error *error = NULL;
  size_t i, count = proofinfer_model_tensor_count(model);
  for (i = 0; i < count; i++) {
    char name[64];
    size_t needed = 0;
    int64_t bytes = 0;
    DO(proofinfer_model_tensor_name(model, i, name, sizeof(name), &needed, &error));
    DO(proofinfer_model_tensor_get_i64(model, i, PROOFINFER_TENSOR_FILE_BYTES, &bytes, &error));
    check(needed > 0 && bytes > 0, "a tensor", NULL);
  }
  check(proofinfer_model_get_text(model, PROOFINFER_MODEL_FORMAT) != NULL, "the format", NULL);
}

/* The tokens of a session that was fed in two parts, rewound and fed again; its logits must be the same twice. */
static void append_and_rewind(const proofinfer_model *model, const proofinfer_options *options, const int32_t *tokens, size_t count,
                              int64_t vocab_size) {
  proofinfer_error *error = NULL;
  proofinfer_session *session = NULL;
  float *first = malloc((size_t)vocab_size * sizeof(float));
  const float *second = NULL;
  size_t needed = 0;
  check(first != NULL, "malloc", NULL);
  DO(proofinfer_session_create(model, options, &session, &error));
  DO(proofinfer_session_append(session, tokens, 1, PROOFINFER_LOGITS_NONE, NULL, &error));
  DO(proofinfer_session_append(session, tokens + 1, count - 1, PROOFINFER_LOGITS_ALL, NULL, &error));
  DO(proofinfer_session_logits(session, count - 1, first, (size_t)vocab_size, &needed, &error));
  DO(proofinfer_session_rewind(session, 1, &error));
  DO(proofinfer_session_append(session, tokens + 1, count - 1, PROOFINFER_LOGITS_LAST, NULL, &error));
  DO(proofinfer_session_logits_view(session, count - 1, &second, &needed, &error));
  check(memcmp(first, second, needed * sizeof(float)) == 0, "the same logits after a rewind", NULL);
  check(proofinfer_session_position(session) == count && proofinfer_session_memory_bytes(session) > 0, "the session", NULL);
  proofinfer_session_free(session);
  free(first);
}

static void evaluate_batch(const proofinfer_model *model, const proofinfer_options *options, const int32_t *tokens) {
  proofinfer_error *error = NULL;
  proofinfer_session *a = NULL, *b = NULL;
  proofinfer_batch *batch = NULL;
  DO(proofinfer_session_create(model, options, &a, &error));
  DO(proofinfer_session_create(model, options, &b, &error));
  DO(proofinfer_batch_create(model, 3, options, &batch, &error));
  DO(proofinfer_batch_add(batch, a, tokens[0], 1, &error));
  DO(proofinfer_batch_add(batch, b, tokens[0], 0, &error));
  DO(proofinfer_batch_add(batch, b, tokens[1], 1, &error));
  DO(proofinfer_batch_evaluate(batch, NULL, &error));
  check(proofinfer_session_position(a) == 1 && proofinfer_session_position(b) == 2, "the batch", NULL);
  DO(proofinfer_batch_add(batch, a, tokens[1], 1, &error));
  DO(proofinfer_batch_clear(batch, &error));
  proofinfer_session_free(a);
  proofinfer_session_free(b);
  proofinfer_batch_free(batch);
}

/* A mask that allows all, a ban and a bias that change little. */
static void limit_sampler(proofinfer_sampler *sampler, const int32_t *tokens, size_t count, int64_t vocab_size) {
  proofinfer_error *error = NULL;
  size_t i, words = (size_t)(vocab_size + 31) / 32;
  uint32_t *mask = malloc(words * sizeof(uint32_t));
  const int32_t last = (int32_t)vocab_size - 1;
  const float bias = -0.5f;
  check(mask != NULL, "malloc", NULL);
  for (i = 0; i < words; i++) mask[i] = 0xFFFFFFFFu;
  DO(proofinfer_sampler_accept(sampler, tokens, count, &error));
  DO(proofinfer_sampler_set_mask(sampler, mask, words, &error));
  DO(proofinfer_sampler_set_banned(sampler, &last, 1, &error));
  DO(proofinfer_sampler_set_bias(sampler, &last, &bias, 1, &error));
  free(mask);
}

static size_t generate(const proofinfer_model *model, const proofinfer_tokenizer *tokenizer, const proofinfer_options *options,
                       const int32_t *tokens, size_t count, int64_t vocab_size) {
  proofinfer_error *error = NULL;
  proofinfer_session *session = NULL;
  proofinfer_sampler *sampler = NULL;
  proofinfer_generation *generation = NULL;
  proofinfer_cancel *cancel = NULL;
  int32_t token = 0, stop = PROOFINFER_STOP_NONE;
  size_t yielded = 0, needed = 0;
  int32_t top[3];
  float logprob = 0, top_logprobs[3];
  char text[256];
  DO(proofinfer_session_create(model, options, &session, &error));
  DO(proofinfer_sampler_create((int32_t)vocab_size, options, &sampler, &error));
  limit_sampler(sampler, tokens, count, vocab_size);
  DO(proofinfer_generation_create(session, tokenizer, sampler, tokens, count, options, &generation, &error));
  DO(proofinfer_cancel_create(&cancel, &error));
  proofinfer_session_free(session); /* the generation keeps it */
  proofinfer_cancel_request(cancel);
  check(proofinfer_generation_next(generation, cancel, &token, text, sizeof(text), &needed, &stop, NULL) == PROOFINFER_E_CANCELLED,
        "a cancelled step", NULL);
  proofinfer_cancel_reset(cancel);
  DO(proofinfer_generation_force(generation, tokens[count - 1], &error));
  while (stop == PROOFINFER_STOP_NONE) {
    DO(proofinfer_generation_next(generation, cancel, &token, text, sizeof(text), &needed, &stop, &error));
    if (token >= 0) yielded++;
    DO(proofinfer_generation_logprobs(generation, &logprob, top, top_logprobs, 3, &needed, &error));
    check(needed == 3 && logprob <= top_logprobs[0], "log-probabilities", NULL);
  }
  check(proofinfer_generation_stop_string(generation, &needed, NULL) == PROOFINFER_E_STATE, "no stop string", NULL);
  proofinfer_cancel_free(cancel);
  proofinfer_sampler_free(sampler);
  proofinfer_generation_free(generation);
  return yielded;
}

static void schedule(const proofinfer_model *model, const proofinfer_tokenizer *tokenizer, const proofinfer_options *options,
                     const int32_t *tokens, size_t count) {
  proofinfer_error *error = NULL;
  proofinfer_scheduler *scheduler = NULL;
  proofinfer_session *session = NULL;
  proofinfer_sampler *sampler = NULL;
  proofinfer_generation *generation = NULL;
  uint64_t id = 0, cancelled = 0;
  int64_t vocab_size = 0;
  int32_t token = 0, stop = 0;
  size_t needed = 0, rows = 0;
  char text[256];
  DO(proofinfer_model_get_i64(model, PROOFINFER_MODEL_VOCAB_SIZE, &vocab_size, &error));
  DO(proofinfer_scheduler_create(model, tokenizer, options, &scheduler, &error));
  DO(proofinfer_scheduler_submit(scheduler, tokens, count, options, &id, &error));
  DO(proofinfer_scheduler_submit(scheduler, tokens, 1, options, &cancelled, &error));
  DO(proofinfer_session_create(model, options, &session, &error));
  DO(proofinfer_sampler_create((int32_t)vocab_size, options, &sampler, &error));
  DO(proofinfer_generation_create(session, tokenizer, sampler, tokens, 1, options, &generation, &error));
  DO(proofinfer_scheduler_add(scheduler, generation, &id, &error));
  DO(proofinfer_scheduler_cancel(scheduler, cancelled, &error));
  check(proofinfer_scheduler_memory_bytes(scheduler) > 0, "memory of a scheduler", NULL);
  while (proofinfer_scheduler_count(scheduler) > 0) {
    DO(proofinfer_scheduler_step(scheduler, NULL, &rows, &error));
    do DO(proofinfer_scheduler_next(scheduler, 0, &id, &token, text, sizeof(text), &needed, &stop, &error));
    while (id != 0);
  }
  proofinfer_scheduler_free(scheduler);
  proofinfer_generation_free(generation);
  proofinfer_sampler_free(sampler);
  proofinfer_session_free(session);
}

static void stream(const proofinfer_tokenizer *tokenizer, const int32_t *tokens, size_t count) {
  proofinfer_error *error = NULL;
  proofinfer_stream *made = NULL;
  char text[256], all[1024];
  size_t i, needed = 0, length = 0;
  DO(proofinfer_stream_create(tokenizer, -1, &made, &error));
  for (i = 1; i < count; i++) {
    DO(proofinfer_stream_push(made, tokens[i], text, sizeof(text), &needed, &error));
    memcpy(all + length, text, needed);
    length += needed;
  }
  DO(proofinfer_stream_flush(made, text, sizeof(text), &needed, &error));
  check(needed == 0 && length >= strlen(PROMPT) && memcmp(all + length - strlen(PROMPT), PROMPT, strlen(PROMPT)) == 0, "the text again",
        NULL);
  proofinfer_stream_free(made);
}

int main(int argc, char **argv) {
  proofinfer_error *error = NULL;
  proofinfer_options *options = NULL;
  proofinfer_model *model = NULL;
  proofinfer_tokenizer *tokenizer = NULL;
  int32_t tokens[64];
  int64_t vocab_size = 0;
  size_t count = 0, yielded;
  const size_t stop_bytes[2] = {9, 9};
  if (argc != 3) return 2;
  DO(proofinfer_selftest(&error));
  DO(proofinfer_options_create(&options, &error));
  DO(proofinfer_options_set_allocator(options, allocate, release, NULL, &error));
  DO(proofinfer_options_set_i64(options, PROOFINFER_TEXT("threads"), 2, &error));
  DO(proofinfer_options_set_i64(options, PROOFINFER_TEXT("context_length"), 100, &error));
  DO(proofinfer_options_set_i64(options, PROOFINFER_TEXT("max_tokens"), 70, &error));
  DO(proofinfer_options_set_f64(options, PROOFINFER_TEXT("temperature"), 0.8, &error));
  DO(proofinfer_options_set_u64(options, PROOFINFER_TEXT("seed"), 42, &error));
  DO(proofinfer_options_set_tokens(options, PROOFINFER_TEXT("stop_tokens"), NULL, 0, &error));
  DO(proofinfer_options_set_texts(options, PROOFINFER_TEXT("stop_strings"), "not there nor here", stop_bytes, 2, &error));
  DO(proofinfer_options_set_i64(options, PROOFINFER_TEXT("logprobs"), 3, &error));
  DO(proofinfer_options_set_i64(options, PROOFINFER_TEXT("top_k"), 100, &error));
  DO(proofinfer_options_set_f64(options, PROOFINFER_TEXT("typical_p"), 0.95, &error));
  DO(proofinfer_options_set_f64(options, PROOFINFER_TEXT("min_p"), 0.01, &error));
  DO(proofinfer_options_set_f64(options, PROOFINFER_TEXT("presence_penalty"), 0.1, &error));
  DO(proofinfer_model_open(argv[1], strlen(argv[1]), options, NULL, &model, &error));
  DO(proofinfer_model_get_i64(model, PROOFINFER_MODEL_VOCAB_SIZE, &vocab_size, &error));
  DO(proofinfer_tokenizer_open(argv[2], strlen(argv[2]), (int32_t)vocab_size, options, &tokenizer, &error));
  DO(proofinfer_tokenizer_encode(tokenizer, PROOFINFER_TEXT(PROMPT), PROOFINFER_ENCODE_BOS, tokens, 64, &count, &error));
  check(count >= 3, "some tokens", NULL);
  refuse_bad_things(model);
  look_at_model(model);
  append_and_rewind(model, options, tokens, count, vocab_size);
  evaluate_batch(model, options, tokens);
  stream(tokenizer, tokens, count);
  yielded = generate(model, tokenizer, options, tokens, count, vocab_size);
  schedule(model, tokenizer, options, tokens, count);
  check(yielded == 70, "seventy tokens", NULL);
  proofinfer_options_free(options);
  proofinfer_tokenizer_free(tokenizer);
  proofinfer_model_free(model);
  check(g_held_blocks == 0, "every block released", NULL);
  printf("ok: %s\n", proofinfer_build_text());
  return 0;
}
