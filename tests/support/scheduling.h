// Generations described by what they are asked for, run alone or in a scheduler. As thread-safe as the API.
#ifndef PROOFINFER_TESTS_SUPPORT_SCHEDULING_H
#define PROOFINFER_TESTS_SUPPORT_SCHEDULING_H

#include <map>
#include <ostream>

#include "support/small_world.h"

namespace proofinfer_test {

// What one generation is asked for.
struct Job {
  std::vector<int32_t> prompt;
  double temperature = 0.0;
  double top_p = 0.9;
  uint64_t seed = 1;
  int64_t max_tokens = 0;
  int64_t context_length = 0;
  std::vector<int32_t> stop_tokens;

  Options options() const {
    Options made = make_options();
    set_f64(made, "temperature", temperature);
    set_f64(made, "top_p", top_p);
    set_u64(made, "seed", seed);
    set(made, "max_tokens", max_tokens);
    set(made, "context_length", context_length);
    set_tokens(made, "stop_tokens", stop_tokens);
    return made;
  }
};

// What came of it.
struct Output {
  std::vector<int32_t> tokens;
  std::string text;
  int32_t reason = PROOFINFER_STOP_NONE;
  Answer answer;  // why it failed
  bool operator==(const Output &other) const {
    return tokens == other.tokens && text == other.text && reason == other.reason && answer.status == other.answer.status;
  }
  // Whether this is how `other` begins.
  bool begins(const Output &other) const {
    return tokens.size() <= other.tokens.size() && std::equal(tokens.begin(), tokens.end(), other.tokens.begin()) &&
           other.text.compare(0, text.size(), text) == 0;
  }
};

inline std::ostream &operator<<(std::ostream &out, const Output &o) {
  return out << testing::PrintToString(o.tokens) << " " << testing::PrintToString(o.text) << " reason " << o.reason << " " << o.answer;
}

inline Output run_alone(const Model &model, const Tokenizer &tokenizer, const Job &job) {
  Options options = job.options();
  Session session = make_session(model, options.get());
  Sampler sampler = make_sampler(int32_t(model_i64(model, PROOFINFER_MODEL_VOCAB_SIZE)), options.get());
  Generation generation = make_generation(session, tokenizer, sampler, job.prompt, options.get());
  Output out;
  while (out.reason == PROOFINFER_STOP_NONE && out.answer.ok()) {
    int32_t token = -1;
    char text[512];
    size_t needed = 0;
    out.answer = answer_of(proofinfer_generation_next, generation.get(), nullptr, &token, text, sizeof(text), &needed, &out.reason);
    if (token >= 0) out.tokens.push_back(token);
    out.text.append(text, needed);
  }
  return out;
}

inline Scheduler make_scheduler(const Model &model, const Tokenizer &tokenizer, const proofinfer_options *options = nullptr,
                                Answer *answer = nullptr) {
  proofinfer_scheduler *made = nullptr;
  Answer got = answer_of(proofinfer_scheduler_create, model.get(), tokenizer.get(), options, &made);
  EXPECT_EQ(made != nullptr, got.ok()) << got;
  if (answer)
    *answer = got;
  else
    EXPECT_TRUE(got.ok()) << got;
  return Scheduler(made);
}

inline uint64_t submit(const Scheduler &scheduler, const Job &job, Answer *answer = nullptr) {
  Options options = job.options();
  uint64_t id = 77;
  Answer got = answer_of(proofinfer_scheduler_submit, scheduler.get(), job.prompt.data(), job.prompt.size(), options.get(), &id);
  EXPECT_EQ(id != 0, got.ok()) << got;
  if (answer)
    *answer = got;
  else
    EXPECT_TRUE(got.ok()) << got;
  return id;
}

inline size_t step(const Scheduler &scheduler) {
  size_t rows = 77;
  Answer got = answer_of(proofinfer_scheduler_step, scheduler.get(), nullptr, &rows);
  EXPECT_TRUE(got.ok()) << got;
  return rows;
}

// Takes one piece of `only` (0: of any) and files it under its id, which is returned; 0: there was none.
inline uint64_t take(const Scheduler &scheduler, std::map<uint64_t, Output> *outputs, uint64_t only = 0) {
  uint64_t id = 77;
  int32_t token = -5, reason = -5;
  char text[512];
  size_t needed = 0;
  Answer got = answer_of(proofinfer_scheduler_next, scheduler.get(), only, &id, &token, text, sizeof(text), &needed, &reason);
  if (id == 0) {
    EXPECT_TRUE(got.ok() && token == -1 && needed == 0 && reason == PROOFINFER_STOP_NONE) << got;
    return 0;
  }
  Output &out = (*outputs)[id];
  EXPECT_TRUE(out.reason == PROOFINFER_STOP_NONE && out.answer.ok()) << "a piece after the end of " << id;
  out.answer = got;
  if (token >= 0) out.tokens.push_back(token);
  out.text.append(text, needed);
  out.reason = reason;
  return id;
}

// Steps and takes until every generation has left.
inline void drain(const Scheduler &scheduler, std::map<uint64_t, Output> *outputs) {
  for (size_t steps = 0; proofinfer_scheduler_count(scheduler.get()) > 0; steps++) {
    ASSERT_LT(steps, 100000u);
    step(scheduler);
    while (take(scheduler, outputs)) {
    }
  }
}

}  // namespace proofinfer_test

#endif
