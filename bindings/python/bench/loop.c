/* The loop that bench/overhead.py compares with, in C: loop MODEL TOKENIZER TOKENS ROUNDS prints, for each token but the first, the seconds of
 * its fastest round. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proofinfer.h"

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static void need(int32_t status, proofinfer_error *error) {
  if (status == PROOFINFER_OK) return;
  fprintf(stderr, "loop: %s\n", proofinfer_error_message(error));
  exit(1);
}

static size_t length_of(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}

/* best: [tokens - 1], lowered where this round is faster. */
static void tell(proofinfer_model *model, proofinfer_tokenizer *tokenizer, int32_t vocab_size, proofinfer_options *options, double *best) {
  proofinfer_error *error = NULL;
  proofinfer_session *session;
  proofinfer_sampler *sampler;
  proofinfer_generation *generation;
  const int32_t bos = 1;
  int32_t token, reason = PROOFINFER_STOP_NONE;
  char text[256];
  size_t needed, at = 0;
  double before, now;
  need(proofinfer_session_create(model, NULL, &session, &error), error);
  need(proofinfer_sampler_create(vocab_size, NULL, &sampler, &error), error);
  need(proofinfer_generation_create(session, tokenizer, sampler, &bos, 1, options, &generation, &error), error);
  need(proofinfer_generation_next(generation, NULL, &token, text, sizeof text, &needed, &reason, &error), error);
  for (before = seconds_now(); reason == PROOFINFER_STOP_NONE; at++, before = now) {
    need(proofinfer_generation_next(generation, NULL, &token, text, sizeof text, &needed, &reason, &error), error);
    now = seconds_now();
    if (now - before < best[at]) best[at] = now - before;
  }
  proofinfer_generation_free(generation);
  proofinfer_sampler_free(sampler);
  proofinfer_session_free(session);
}

int main(int argc, char **argv) {
  proofinfer_error *error = NULL;
  proofinfer_model *model;
  proofinfer_tokenizer *tokenizer;
  proofinfer_options *options;
  int64_t vocab_size;
  double *best;
  int tokens, rounds, i;
  if (argc != 5 || (tokens = atoi(argv[3])) < 2) return 2;
  best = malloc((size_t)tokens * sizeof *best);
  if (!best) return 1;
  for (i = 0; i < tokens; i++) best[i] = 1e9;
  need(proofinfer_model_open(argv[1], length_of(argv[1]), NULL, NULL, &model, &error), error);
  need(proofinfer_model_get_i64(model, PROOFINFER_MODEL_VOCAB_SIZE, &vocab_size, &error), error);
  need(proofinfer_tokenizer_open(argv[2], length_of(argv[2]), (int32_t)vocab_size, NULL, &tokenizer, &error), error);
  need(proofinfer_options_create(&options, &error), error);
  need(proofinfer_options_set_i64(options, PROOFINFER_TEXT("max_tokens"), tokens, &error), error);
  need(proofinfer_options_set_tokens(options, PROOFINFER_TEXT("stop_tokens"), NULL, 0, &error), error);
  for (rounds = atoi(argv[4]); rounds > 0; rounds--) tell(model, tokenizer, (int32_t)vocab_size, options, best);
  for (i = 0; i + 1 < tokens; i++) printf("%.9f\n", best[i]);
  free(best);
  proofinfer_options_free(options);
  proofinfer_tokenizer_free(tokenizer);
  proofinfer_model_free(model);
  return 0;
}
