// A program of calls: options, sessions, appends, rewinds, batches, sampling, generations, streams, a scheduler, cancels, handles of the wrong kind, ids
// that do not exist, handles freed in any order. Input: u8 that chooses the checkpoint's format, then one byte an operation and its arguments.
#include "harness.h"

using namespace proofinfer_fuzz;

namespace {

constexpr size_t kSlots = 3;
constexpr size_t kMostOperations = 200;
constexpr size_t kMostTokens = 8;

struct World {
  proofinfer_options *options = nullptr;
  proofinfer_model *model = nullptr;
  proofinfer_tokenizer *tokenizer = nullptr;
  proofinfer_cancel *cancel = nullptr;
  proofinfer_session *sessions[kSlots] = {};
  proofinfer_batch *batches[kSlots] = {};
  proofinfer_sampler *samplers[kSlots] = {};
  proofinfer_generation *generations[kSlots] = {};
  proofinfer_stream *streams[kSlots] = {};
  proofinfer_scheduler *scheduler = nullptr;
};

// Values at the borders, and small ones.
int64_t odd_number(Reader *in) {
  static const int64_t kNumbers[] = {0, 1, 2, 63, 64, 65, 80, 81, 1000, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  return kNumbers[in->u8() % (sizeof(kNumbers) / sizeof(kNumbers[0]))];
}

double odd_double(Reader *in) {
  static const double kNumbers[] = {0.0,    -0.0,   1.0,    0.5, 0.9, 1e-40, 1e30, -1.0, __builtin_nan(""), __builtin_inf(),
                                    5e-324, 1000.0, -1000.0};
  return kNumbers[in->u8() % (sizeof(kNumbers) / sizeof(kNumbers[0]))];
}

// Mostly an id of the vocabulary.
int32_t odd_token(Reader *in) {
  uint8_t byte = in->u8();
  if (byte < 250) return byte;
  static const int32_t kTokens[] = {kFixedVocabSize - 1, kFixedVocabSize, -1, INT32_MAX, INT32_MIN, 256};
  return kTokens[byte - 250];
}

bool is_token(int32_t token) { return token >= 0 && token < kFixedVocabSize; }

void set_option(World *w, Reader *in) {
  proofinfer_options *o = w->options;
  switch (in->u8() % 15) {
    case 0: call(proofinfer_options_set_i64, o, PROOFINFER_TEXT("context_length"), odd_number(in)); break;
    case 1: call(proofinfer_options_set_i64, o, PROOFINFER_TEXT("max_tokens"), odd_number(in)); break;
    case 2: call(proofinfer_options_set_f64, o, PROOFINFER_TEXT("temperature"), odd_double(in)); break;
    case 3: call(proofinfer_options_set_f64, o, PROOFINFER_TEXT("top_p"), odd_double(in)); break;
    case 4: call(proofinfer_options_set_u64, o, PROOFINFER_TEXT("seed"), uint64_t(odd_number(in))); break;
    case 5: {
      const size_t isa = in->u8() % (proofinfer_isa_count() + 1);
      const char *name = isa < proofinfer_isa_count() ? proofinfer_isa_name(isa) : "auto";
      call(proofinfer_options_set_text, o, PROOFINFER_TEXT("isa"), name, std::strlen(name));
      break;
    }
    case 6: {
      int32_t tokens[3] = {odd_token(in), odd_token(in), odd_token(in)};
      call(proofinfer_options_set_tokens, o, PROOFINFER_TEXT("stop_tokens"), static_cast<const int32_t *>(tokens), size_t(in->u8() % 4));
      break;
    }
    case 7: call(proofinfer_options_set_u64, o, PROOFINFER_TEXT("memory_limit_bytes"), uint64_t(in->u16()) * 16); break;
    case 8: call(proofinfer_options_set_i64, o, PROOFINFER_TEXT("max_generations"), odd_number(in)); break;
    case 9: call(proofinfer_options_set_i64, o, PROOFINFER_TEXT("prefill_chunk"), odd_number(in)); break;
    case 10: {
      static const char *const kNames[] = {"top_k", "penalty_window", "logprobs"};
      const char *name = kNames[in->u8() % 3];
      call(proofinfer_options_set_i64, o, name, std::strlen(name), odd_number(in));
      break;
    }
    case 11:
    case 12: {
      static const char *const kNames[] = {"typical_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty"};
      const char *name = kNames[in->u8() % 5];
      call(proofinfer_options_set_f64, o, name, std::strlen(name), odd_double(in));
      break;
    }
    case 13: {
      char texts[12];
      size_t bytes[4], count = in->u8() % 5;
      for (char &byte : texts) byte = char(in->u8());
      for (size_t i = 0; i < count; i++) bytes[i] = in->u8() % 4;
      call(proofinfer_options_set_texts, o, PROOFINFER_TEXT("stop_strings"), static_cast<const char *>(texts),
           static_cast<const size_t *>(bytes), count);
      break;
    }
    default: HOLDS(call(proofinfer_options_set_f64, o, PROOFINFER_TEXT("threads"), 1.0) == PROOFINFER_E_ARGUMENT); break;
  }
}

// The logits of the last position, or nullptr.
const float *last_logits(proofinfer_session *s) {
  const float *view = nullptr;
  size_t count = 0;
  const size_t position = proofinfer_session_position(s);
  if (position > 0) call(proofinfer_session_logits_view, s, position - 1, &view, &count);
  return view;
}

// Into a slot that is empty. The clone holds what the session holds, and the session still holds it.
void clone(World *w, Reader *in, size_t to) {
  proofinfer_session *s = w->sessions[in->u8() % kSlots];
  const size_t position = proofinfer_session_position(s);
  Out<proofinfer_session> made;
  proofinfer_session *c = made.of(call(proofinfer_session_clone, s, in->u8() % 2 ? w->options : nullptr, &made.handle));
  w->sessions[to] = c;
  HOLDS(proofinfer_session_position(s) == position);
  if (!c) return;
  HOLDS(s != nullptr && proofinfer_session_position(c) == position && proofinfer_session_context_length(c) >= position);
  const float *kept = last_logits(s), *cloned = last_logits(c);
  HOLDS((kept == nullptr) == (cloned == nullptr));
  if (kept) HOLDS(std::memcmp(kept, cloned, kFixedVocabSize * sizeof(float)) == 0);
}

constexpr uint8_t kMakeClone = 246;  // and above; what is below was there before

void make(World *w, Reader *in) {
  const size_t i = in->u8() % kSlots;
  const uint8_t what = in->u8();
  if (what >= kMakeClone) {
    if (!w->sessions[i]) clone(w, in, i);
    return;
  }
  switch (what % 5) {
    case 0:
      if (!w->sessions[i] && w->model) {
        Out<proofinfer_session> made;
        w->sessions[i] = made.of(call(proofinfer_session_create, w->model, w->options, &made.handle));
      }
      break;
    case 1:
      if (!w->batches[i] && w->model) {
        Out<proofinfer_batch> made;
        w->batches[i] = made.of(call(proofinfer_batch_create, w->model, size_t(odd_number(in)), w->options, &made.handle));
      }
      break;
    case 2:
      if (!w->samplers[i]) {
        Out<proofinfer_sampler> made;
        const int32_t vocab_size = in->u8() % 8 ? kFixedVocabSize : int32_t(in->u8()) - 1;
        w->samplers[i] = made.of(call(proofinfer_sampler_create, vocab_size, w->options, &made.handle));
      }
      break;
    case 3:
      if (!w->generations[i]) {
        Out<proofinfer_generation> made;
        int32_t prompt[kMostTokens];
        const size_t count = in->u8() % (kMostTokens + 1);
        for (size_t k = 0; k < count; k++) prompt[k] = odd_token(in);
        w->generations[i] = made.of(call(proofinfer_generation_create, w->sessions[in->u8() % kSlots], w->tokenizer,
                                         w->samplers[in->u8() % kSlots], prompt, count, w->options, &made.handle));
      }
      break;
    default:
      if (!w->streams[i] && w->tokenizer) {
        Out<proofinfer_stream> made;
        w->streams[i] = made.of(call(proofinfer_stream_create, w->tokenizer, odd_token(in), &made.handle));
      }
      break;
  }
}

void append(World *w, Reader *in) {
  proofinfer_session *s = w->sessions[in->u8() % kSlots];
  int32_t tokens[kMostTokens];
  const size_t count = in->u8() % (kMostTokens + 1);
  bool good = s != nullptr;
  for (size_t k = 0; k < count; k++) {
    tokens[k] = odd_token(in);
    good = good && is_token(tokens[k]);
  }
  const int32_t mode = int32_t(in->u8() % 5) - 1;
  const size_t before = proofinfer_session_position(s), room = proofinfer_session_context_length(s) - before;
  const int32_t status = call(proofinfer_session_append, s, tokens, count, mode, in->u8() % 2 ? w->cancel : nullptr);
  if (!good || mode < 0 || mode > 2) HOLDS(status != PROOFINFER_OK);
  if (status == PROOFINFER_OK) HOLDS(count <= room);
  HOLDS(proofinfer_session_position(s) == before + (status == PROOFINFER_OK ? count : 0));
}

// Scores of one session; of the same tokens as texts of their own where that is possible.
void score(World *w, Reader *in) {
  proofinfer_session *s = w->sessions[in->u8() % kSlots];
  int32_t tokens[kMostTokens];
  float logprobs[kMostTokens];
  const size_t count = in->u8() % (kMostTokens + 1);
  bool good = s != nullptr;
  for (size_t k = 0; k < count; k++) {
    tokens[k] = odd_token(in);
    good = good && is_token(tokens[k]);
  }
  const size_t before = proofinfer_session_position(s), room = proofinfer_session_context_length(s) - before;
  const int32_t status = call(proofinfer_session_score, s, tokens, count, logprobs, in->u8() % 2 ? w->cancel : nullptr);
  if (!good) HOLDS(status != PROOFINFER_OK);
  if (status == PROOFINFER_OK) HOLDS(count <= room);
  HOLDS(proofinfer_session_position(s) == before + (status == PROOFINFER_OK ? count : 0));
  for (size_t k = before == 0; status == PROOFINFER_OK && k < count; k++) HOLDS(logprobs[k] <= 0.0f);
  const size_t first = count ? in->u8() % (count + 1) : 0;
  const size_t counts[] = {first, 0, count - first};
  float again[kMostTokens];
  if (call(proofinfer_model_score, w->model, static_cast<const int32_t *>(tokens), static_cast<const size_t *>(counts), size_t(3),
           w->options, static_cast<float *>(again), in->u8() % 2 ? w->cancel : nullptr) != PROOFINFER_OK)
    return;
  for (size_t k = 0; k < count; k++) HOLDS(k == 0 || k == first ? __builtin_isnan(again[k]) : again[k] <= 0.0f);
  if (status == PROOFINFER_OK && before == 0 && first > 1) HOLDS(std::memcmp(again + 1, logprobs + 1, (first - 1) * sizeof(float)) == 0);
}

void look_at_session(World *w, Reader *in) {
  proofinfer_session *s = w->sessions[in->u8() % kSlots];
  const size_t position = size_t(odd_number(in));
  float logits[kFixedVocabSize];
  const float *view = nullptr;
  size_t needed = 0, count = 0;
  const int32_t status = call(proofinfer_session_logits_view, s, position, &view, &count);
  HOLDS((view != nullptr) == (status == PROOFINFER_OK));
  HOLDS(call(proofinfer_session_logits, s, position, logits, size_t(kFixedVocabSize), &needed) == status);
  if (view) HOLDS(std::memcmp(view, logits, sizeof(logits)) == 0);
  int32_t tokens[kMostTokens];
  call(proofinfer_session_tokens, s, tokens, kMostTokens, &needed);
  HOLDS(needed == proofinfer_session_position(s));
  HOLDS(proofinfer_session_position(s) <= proofinfer_session_context_length(s));
  (void)proofinfer_session_memory_bytes(s);
}

void rewind(World *w, Reader *in) {
  proofinfer_session *s = w->sessions[in->u8() % kSlots];
  const size_t to = in->u8(), before = proofinfer_session_position(s);
  const int32_t status = call(proofinfer_session_rewind, s, to);
  HOLDS(status == (s && to <= before ? PROOFINFER_OK : PROOFINFER_E_ARGUMENT));
  HOLDS(proofinfer_session_position(s) == (status == PROOFINFER_OK ? to : before));
}

// A saved state of one session in another, now and then with a changed byte.
void carry(World *w, Reader *in) {
  proofinfer_session *from = w->sessions[in->u8() % kSlots], *to = w->sessions[in->u8() % kSlots];
  if (!from || !to) return;
  static uint8_t state[8192];
  size_t needed = 0;
  HOLDS(call(proofinfer_session_save, from, state, sizeof(state), &needed) == PROOFINFER_OK);
  const bool changed = in->u8() % 4 == 0;
  if (changed) state[in->u16() % needed] ^= 0x10;
  const size_t before = proofinfer_session_position(to);
  const int32_t status = call(proofinfer_session_restore, to, static_cast<const uint8_t *>(state), needed);
  if (changed) HOLDS(status != PROOFINFER_OK);
  HOLDS(proofinfer_session_position(to) == (status == PROOFINFER_OK ? proofinfer_session_position(from) : before));
}

void batch(World *w, Reader *in) {
  proofinfer_batch *b = w->batches[in->u8() % kSlots];
  switch (in->u8() % 4) {
    case 0:
    case 1: call(proofinfer_batch_add, b, w->sessions[in->u8() % kSlots], odd_token(in), int32_t(in->u8() % 3)); break;
    case 2: call(proofinfer_batch_evaluate, b, in->u8() % 2 ? w->cancel : nullptr); break;
    default: HOLDS(call(proofinfer_batch_clear, b) == (b ? PROOFINFER_OK : PROOFINFER_E_ARGUMENT)); break;
  }
}

void limit(proofinfer_sampler *sampler, const float *logits, Reader *in) {
  int32_t tokens[3] = {odd_token(in), odd_token(in), odd_token(in)}, token = -1;
  const float biases[3] = {float(odd_double(in)), float(odd_double(in)), float(odd_double(in))};
  const size_t count = in->u8() % 4;
  switch (in->u8() % 5) {
    case 0: {
      const int32_t status = call(proofinfer_sampler_set_bias, sampler, static_cast<const int32_t *>(tokens), biases, count);
      if (status == PROOFINFER_OK)
        for (size_t i = 0; i < count; i++) HOLDS(__builtin_isfinite(biases[i]));
      break;
    }
    case 1: call(proofinfer_sampler_set_banned, sampler, static_cast<const int32_t *>(tokens), count); break;
    case 2: call(proofinfer_sampler_accept, sampler, static_cast<const int32_t *>(tokens), count); break;
    case 3: call(proofinfer_sampler_set_mask, sampler, nullptr, size_t(0)); break;
    default: {
      uint32_t words[(kFixedVocabSize + 31) / 32] = {};
      if (is_token(tokens[0])) words[tokens[0] / 32] = 1u << tokens[0] % 32;
      const int32_t set =
          call(proofinfer_sampler_set_mask, sampler, static_cast<const uint32_t *>(words), sizeof(words) / sizeof(words[0]));
      const int32_t status = call(proofinfer_sampler_sample, sampler, logits, size_t(kFixedVocabSize), &token);
      if (set == PROOFINFER_OK && status == PROOFINFER_OK) HOLDS(token == tokens[0]);
      break;
    }
  }
}

void sample(World *w, Reader *in) {
  proofinfer_sampler *sampler = w->samplers[in->u8() % kSlots];
  float logits[kFixedVocabSize];
  for (float &value : logits) value = 0.0f;
  for (size_t changes = in->u8() % 5; changes > 0; changes--) logits[in->u8()] = float(odd_double(in));
  int32_t token = -1;
  const int32_t status = call(proofinfer_sampler_sample, sampler, static_cast<const float *>(logits), size_t(kFixedVocabSize), &token);
  if (status == PROOFINFER_OK) HOLDS(is_token(token));
  if (in->u8() % 4 == 0) call(proofinfer_sampler_reseed, sampler, uint64_t(odd_number(in)));
  if (in->u8() % 2 == 0) limit(sampler, logits, in);
  int32_t top[4];
  float logprobs[4];
  const size_t count = in->u8() % 5;
  if (call(proofinfer_logits_top, static_cast<const float *>(logits), size_t(kFixedVocabSize), count, static_cast<int32_t *>(top),
           static_cast<float *>(logprobs)) != PROOFINFER_OK)
    return;
  for (size_t i = 0; i < count; i++) HOLDS(is_token(top[i]) && logprobs[i] <= 0.0f && (i == 0 || logprobs[i] <= logprobs[i - 1]));
  float again[4];
  HOLDS(call(proofinfer_logits_logprobs, static_cast<const float *>(logits), size_t(kFixedVocabSize), static_cast<const int32_t *>(top),
             count, static_cast<float *>(again)) == PROOFINFER_OK);
  HOLDS(std::memcmp(again, logprobs, count * sizeof(float)) == 0);
  const int32_t one = odd_token(in);
  const int32_t status_of_one = call(proofinfer_logits_logprobs, static_cast<const float *>(logits), size_t(kFixedVocabSize),
                                     static_cast<const int32_t *>(&one), size_t(1), static_cast<float *>(again));
  HOLDS((status_of_one == PROOFINFER_OK) == is_token(one));
}

void generate(World *w, Reader *in) {
  proofinfer_generation *g = w->generations[in->u8() % kSlots];
  if (in->u8() % 8 == 0) call(proofinfer_generation_force, g, odd_token(in));
  char text[16];
  size_t needed = 0;
  int32_t token = -2, stop = -2;
  const int32_t status = call(proofinfer_generation_next, g, in->u8() % 4 ? nullptr : w->cancel, &token, text,
                              size_t(in->u8() % (sizeof(text) + 1)), &needed, &stop);
  if (status != PROOFINFER_OK) return;
  HOLDS(needed <= sizeof(text) && is_utf8(text, needed));
  HOLDS(token == -1 || is_token(token));
  HOLDS(stop >= PROOFINFER_STOP_NONE && stop <= PROOFINFER_STOP_STRING);
  size_t index = 0;
  const int32_t by_string = call(proofinfer_generation_stop_string, g, &index);
  HOLDS((by_string == PROOFINFER_OK) == (stop == PROOFINFER_STOP_STRING) && index < 4);
  float logprob = 0.0f, logprobs[8];
  int32_t tokens[8];
  if (call(proofinfer_generation_logprobs, g, &logprob, static_cast<int32_t *>(tokens), static_cast<float *>(logprobs), size_t(8),
           &needed) == PROOFINFER_OK)
    HOLDS(needed >= 1 ? logprob <= logprobs[0] : __builtin_isnan(logprob));
}

void push(World *w, Reader *in) {
  proofinfer_stream *s = w->streams[in->u8() % kSlots];
  char text[16];
  size_t needed = 0;
  const size_t capacity = in->u8() % (sizeof(text) + 1);
  const int32_t status = in->u8() % 8 ? call(proofinfer_stream_push, s, odd_token(in), text, capacity, &needed)
                                      : call(proofinfer_stream_flush, s, text, capacity, &needed);
  if (status == PROOFINFER_OK) HOLDS(needed <= capacity && is_utf8(text, needed));
}

void take_piece(proofinfer_scheduler *s, Reader *in) {
  char text[16];
  size_t needed = 0;
  uint64_t id = 7;
  int32_t token = -2, stop = -2;
  const size_t before = proofinfer_scheduler_count(s);
  const int32_t status = call(proofinfer_scheduler_next, s, in->u8() % 4 ? uint64_t(0) : uint64_t(in->u8()), &id, &token, text,
                              size_t(in->u8() % (sizeof(text) + 1)), &needed, &stop);
  const bool leaves = s && id != 0 && status != PROOFINFER_E_BUFFER && (status != PROOFINFER_OK || stop != PROOFINFER_STOP_NONE);
  HOLDS(proofinfer_scheduler_count(s) == before - leaves);
  if (status != PROOFINFER_OK) return;
  HOLDS(needed <= sizeof(text) && is_utf8(text, needed));
  HOLDS(token == -1 || is_token(token));
  HOLDS(id != 0 || (token == -1 && stop == PROOFINFER_STOP_NONE && needed == 0));
}

void schedule(World *w, Reader *in) {
  proofinfer_scheduler *s = w->scheduler;
  uint64_t id = 7;
  switch (in->u8() % 6) {
    case 0:
      if (!s && w->model && w->tokenizer) {
        Out<proofinfer_scheduler> made;
        w->scheduler = made.of(call(proofinfer_scheduler_create, w->model, w->tokenizer, w->options, &made.handle));
      }
      break;
    case 1: {
      int32_t prompt[kMostTokens];
      const size_t count = in->u8() % (kMostTokens + 1), before = proofinfer_scheduler_count(s);
      for (size_t k = 0; k < count; k++) prompt[k] = odd_token(in);
      const int32_t status = call(proofinfer_scheduler_submit, s, static_cast<const int32_t *>(prompt), count, w->options, &id);
      HOLDS((id != 0) == (status == PROOFINFER_OK) && proofinfer_scheduler_count(s) == before + (id != 0));
      break;
    }
    case 2: HOLDS((call(proofinfer_scheduler_add, s, w->generations[in->u8() % kSlots], &id) == PROOFINFER_OK) == (id != 0)); break;
    case 3: call(proofinfer_scheduler_cancel, s, uint64_t(in->u8() % 16)); break;
    case 4: {
      size_t rows = 7;
      const int32_t status = call(proofinfer_scheduler_step, s, in->u8() % 4 ? nullptr : w->cancel, &rows);
      HOLDS(status == (s ? status == PROOFINFER_E_CANCELLED ? PROOFINFER_E_CANCELLED : PROOFINFER_OK : PROOFINFER_E_ARGUMENT));
      HOLDS(status == PROOFINFER_OK || rows == 0);
      break;
    }
    default: take_piece(s, in); break;
  }
}

// Every handle where another kind is wanted.
void misuse(World *w, Reader *in) {
  void *handles[] = {w->options,    w->model,       w->tokenizer,      w->cancel,    w->sessions[0],
                     w->batches[0], w->samplers[0], w->generations[0], w->streams[0]};
  void *handle = handles[in->u8() % 9];
  const int32_t token = 0;
  char text[16];
  size_t needed = 0;
  int32_t id = 0, status = PROOFINFER_E_ARGUMENT;
  switch (in->u8() % 8) {
    case 0:
      if (handle != w->sessions[0])
        status = call(proofinfer_session_append, static_cast<proofinfer_session *>(handle), &token, size_t(1), 0, nullptr);
      break;
    case 1:
      if (handle != w->batches[0]) status = call(proofinfer_batch_evaluate, static_cast<proofinfer_batch *>(handle), nullptr);
      break;
    case 2:
      if (handle != w->samplers[0]) status = call(proofinfer_sampler_reseed, static_cast<proofinfer_sampler *>(handle), uint64_t(1));
      break;
    case 3:
      if (handle != w->generations[0])
        status =
            call(proofinfer_generation_next, static_cast<proofinfer_generation *>(handle), nullptr, &id, text, sizeof(text), &needed, &id);
      break;
    case 4:
      if (handle != w->streams[0])
        status = call(proofinfer_stream_push, static_cast<proofinfer_stream *>(handle), token, text, sizeof(text), &needed);
      break;
    case 5:
      if (handle != w->cancel) proofinfer_cancel_request(static_cast<proofinfer_cancel *>(handle));
      break;
    case 6:
      if (handle != w->model) proofinfer_model_free(static_cast<proofinfer_model *>(handle));
      break;
    default:
      if (handle != w->options)
        status = call(proofinfer_options_set_i64, static_cast<proofinfer_options *>(handle), PROOFINFER_TEXT("threads"), int64_t(1));
      break;
  }
  HOLDS(status == PROOFINFER_E_ARGUMENT);
}

template <typename T>
void drop(T **handle, void (*free_function)(T *)) {
  free_function(*handle);
  *handle = nullptr;
}

void release(World *w, uint8_t what, size_t i) {
  switch (what % 8) {
    case 0: drop(&w->sessions[i], proofinfer_session_free); break;
    case 1: drop(&w->batches[i], proofinfer_batch_free); break;
    case 2: drop(&w->samplers[i], proofinfer_sampler_free); break;
    case 3: drop(&w->generations[i], proofinfer_generation_free); break;
    case 4: drop(&w->streams[i], proofinfer_stream_free); break;
    case 5: drop(&w->model, proofinfer_model_free); break;
    case 6: drop(&w->tokenizer, proofinfer_tokenizer_free); break;
    default: break;
  }
}

void run(World *w, Reader *in) {
  const uint8_t operation = in->u8();
  if (operation >= 240) return schedule(w, in);
  if (operation >= 232) return carry(w, in);
  if (operation >= 228) return score(w, in);
  switch (operation % 16) {
    case 0: set_option(w, in); break;
    case 1:
    case 2: make(w, in); break;
    case 3:
    case 4: append(w, in); break;
    case 5: look_at_session(w, in); break;
    case 6: rewind(w, in); break;
    case 7:
    case 8: batch(w, in); break;
    case 9: sample(w, in); break;
    case 10:
    case 11:
    case 12: generate(w, in); break;
    case 13: push(w, in); break;
    case 14:
      if (in->u8() % 4 == 0)
        misuse(w, in);
      else if (in->u8() % 2)
        proofinfer_cancel_request(w->cancel);
      else
        proofinfer_cancel_reset(w->cancel);
      break;
    default: {
      const uint8_t what = in->u8();
      release(w, what, in->u8() % kSlots);
      break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Case c(size + (64 << 10));
  Reader in(data, size);
  const std::vector<uint8_t> &file = fixed_checkpoint(in.u8() % 3);
  World w;
  Out<proofinfer_model> model;
  Out<proofinfer_tokenizer> tokenizer;
  Out<proofinfer_cancel> cancel;
  w.options = c.options();
  w.model = model.of(call(proofinfer_model_open_memory, file.data(), file.size(), w.options, nullptr, &model.handle));
  w.tokenizer = tokenizer.of(call(proofinfer_tokenizer_open_memory, fixed_tokenizer().data(), fixed_tokenizer().size(), kFixedVocabSize,
                                  w.options, &tokenizer.handle));
  w.cancel = cancel.of(call(proofinfer_cancel_create, &cancel.handle));
  HOLDS(w.model && w.tokenizer && w.cancel);
  const size_t kAll = 8 * kSlots;
  const uint8_t order = size ? data[size - 1] : 0;
  for (size_t i = 0; i < kMostOperations && !in.ended(); i++) run(&w, &in);
  for (size_t i = 0; i < kAll; i++) {  // 7 and 24 have no common divisor: every handle once, from any start
    const size_t k = (order + i * 7) % kAll;
    release(&w, uint8_t(k % 8), k / 8);
  }
  proofinfer_scheduler_free(w.scheduler);
  proofinfer_cancel_free(w.cancel);
  c.count_as_loaded();
  return 0;
}
