// Stop strings, log-probabilities and limits in generations: against plain definitions, over drawn texts cut into tokens in any way.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/random_sampling.h"
#include "support/small_world.h"
#include "support/vocabulary.h"

namespace proofinfer_test {

namespace {

using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

constexpr int32_t kA = 260, kAb = 262, kSpaceAb = 264;  // pieces of the small world
int32_t byte_token(char byte) { return 3 + uint8_t(byte); }

void set_stop_strings(const Options &options, const Strings &strings) {
  std::string texts;
  std::vector<size_t> bytes;
  for (const std::string &s : strings) texts += s, bytes.push_back(s.size());
  Answer answer =
      answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_strings"), texts.data(), bytes.data(), bytes.size());
  EXPECT_TRUE(answer.ok()) << answer;
}

struct Step {
  Answer answer;
  int32_t token = -5, reason = -5;
  std::string text;
};

// One piece; now and then with too little room first.
Step next(const Generation &generation, bool short_first = false) {
  Step step;
  char buffer[4096];
  size_t needed = 0;
  for (size_t capacity : {short_first ? size_t(0) : sizeof(buffer), sizeof(buffer)}) {
    step.answer = answer_of(proofinfer_generation_next, generation.get(), nullptr, &step.token, buffer, capacity, &needed, &step.reason);
    if (step.answer.status != PROOFINFER_E_BUFFER) break;
  }
  EXPECT_TRUE(step.answer.ok()) << step.answer;
  step.text.assign(buffer, step.answer.ok() ? needed : 0);
  return step;
}

// A session with a generation that is told each token.
struct Told {
  Session session;
  Sampler sampler;
  Generation generation;
  Told(const SmallWorld &world, const Options &options)
      : session(make_session(world.model)),
        sampler(make_sampler(small_shape().vocab(), options.get())),
        generation(make_generation(session, world.tokenizer, sampler, {kA}, options.get())) {}
  Step tell(int32_t token, bool short_first = false) {
    EXPECT_TRUE(answer_of(proofinfer_generation_force, generation.get(), token).ok());
    return next(generation, short_first);
  }
  size_t position() const { return proofinfer_session_position(session.get()); }
};

Answer stop_string(const Generation &generation, size_t *index) {
  return answer_of(proofinfer_generation_stop_string, generation.get(), index);
}

// The first byte at which a string is complete, by looking everywhere.
struct Found {
  int index = -1;
  size_t begin = 0;
};
Found find_first(const Strings &strings, const std::string &bytes) {
  Found best;
  size_t best_end = SIZE_MAX;
  for (size_t i = 0; i < strings.size(); i++) {
    size_t begin = bytes.find(strings[i]), end = begin + strings[i].size();
    if (begin == std::string::npos) continue;
    if (end > best_end || (end == best_end && begin >= best.begin)) continue;
    best = {int(i), begin};
    best_end = end;
  }
  return best;
}

std::string whole_text(const SmallWorld &world, const std::string &bytes, bool ends) {
  proofinfer_stream *made = nullptr;
  EXPECT_TRUE(answer_of(proofinfer_stream_create, world.tokenizer.get(), -1, &made).ok());
  Stream stream(made);
  std::string text;
  char buffer[64];
  size_t needed = 0;
  for (char byte : bytes) {
    EXPECT_TRUE(answer_of(proofinfer_stream_push, stream.get(), byte_token(byte), buffer, sizeof(buffer), &needed).ok());
    text.append(buffer, needed);
  }
  EXPECT_TRUE(answer_of(proofinfer_stream_flush, stream.get(), buffer, sizeof(buffer), &needed).ok());
  return ends ? text.append(buffer, needed) : text;
}

size_t longest_beginning(const Strings &strings, const std::string &bytes) {
  size_t longest = 0;
  for (const std::string &s : strings)
    for (size_t k = 1; k < s.size() && k <= bytes.size(); k++)
      if (bytes.compare(bytes.size() - k, k, s, 0, k) == 0) longest = std::max(longest, k);
  return longest;
}

}  // namespace

TEST(GenerationStops, pieces_that_are_known_to_end_texts_do_so_if_they_are_control_pieces) {
  constexpr int32_t kEnd = 256, kEos = 257;
  const Model model = open_model(legacy_checkpoint({16, 24, 1, 4, 2, kEos + 1, 16}, 7));
  for (const char *end : {"<|eot_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>", "<|eom_id|>", "</s>", "<|other|>"})
    for (int32_t kind : {kControl, kUserDefined, kNormal}) {
      RuleVocabulary vocabulary;
      vocabulary.others = {{end, 0, kind}, {"<|eos|>", 0, kControl}};
      GgufFile file = rule_file(vocabulary);
      file.add("tokenizer.ggml.eos_token_id", uint32_t(kEos));
      const Tokenizer tokenizer = open_tokenizer(file.bytes(), 0);
      const bool ends = kind == kControl && end != std::string("<|other|>");
      for (const auto &[token, stops] : {std::pair(kEnd, ends), std::pair(kEos, true), std::pair(int32_t('x'), false)}) {
        const Session session = make_session(model);
        const Sampler sampler = make_sampler(kEos + 1, nullptr);
        const Generation generation = make_generation(session, tokenizer, sampler, {'a'}, nullptr);
        EXPECT_TRUE(answer_of(proofinfer_generation_force, generation.get(), token).ok());
        EXPECT_EQ(next(generation).reason, stops ? PROOFINFER_STOP_TOKEN : PROOFINFER_STOP_NONE) << end << " " << kind << " " << token;
      }
    }
}

TEST(GenerationStops, drawn_texts_in_drawn_tokens_are_cut_exactly_and_never_leak) {
  SmallWorld world;
  Random random{51};
  const std::pair<int32_t, std::string> tokens[] = {{kA, "a"},
                                                    {261, "b"},
                                                    {kAb, "ab"},
                                                    {263, " a"},
                                                    {kSpaceAb, " ab"},
                                                    {265, "the"},
                                                    {byte_token('\xC3'), "\xC3"},
                                                    {byte_token('\xA9'), "\xA9"},
                                                    {byte_token('\xF0'), "\xF0"},
                                                    {byte_token('t'), "t"}};
  size_t stopped = 0;
  for (int round = 0; round < 3000; round++) {
    std::vector<std::pair<int32_t, std::string>> sequence(1 + random.below(12));
    std::string all;
    uint32_t kinds = random.below(3) ? 10 : 3;
    for (auto &token : sequence) all += (token = tokens[random.below(kinds)]).second;
    Strings strings(random.below(5));
    for (std::string &s : strings) {  // a part of the text, maybe with another end
      size_t begin = random.below(uint32_t(all.size()));
      s = all.substr(begin, 1 + random.below(6));
      if (random.below(3) == 0) s += "ab\xA9t"[random.below(4)];
    }
    Options options = make_options();
    set(options, "max_tokens", int64_t(sequence.size()));
    set_tokens(options, "stop_tokens", {});
    set_stop_strings(options, strings);
    Told told(world, options);
    const std::string what = testing::PrintToString(strings) + " in " + testing::PrintToString(all);
    std::string bytes, text;
    for (size_t i = 0; i < sequence.size(); i++) {
      Step step = told.tell(sequence[i].first, random.below(4) == 0);
      ASSERT_EQ(step.token, sequence[i].first);
      ASSERT_EQ(told.position(), 1 + i) << "the token that was told is not appended yet";
      bytes += sequence[i].second;
      text += step.text;
      Found found = find_first(strings, bytes);
      size_t index = 99;
      if (found.index >= 0) {
        ASSERT_EQ(step.reason, PROOFINFER_STOP_STRING) << what;
        ASSERT_EQ(text, whole_text(world, bytes.substr(0, found.begin), true)) << what;
        ASSERT_TRUE(stop_string(told.generation, &index).ok());
        ASSERT_EQ(int(index), found.index) << what;
        Step after = next(told.generation);
        ASSERT_TRUE(after.token == -1 && after.text.empty() && after.reason == PROOFINFER_STOP_STRING);
        stopped++;
        break;
      }
      bool last = i + 1 == sequence.size();
      ASSERT_EQ(step.reason, last ? PROOFINFER_STOP_LENGTH : PROOFINFER_STOP_NONE) << what;
      size_t hidden = last ? 0 : longest_beginning(strings, bytes);
      ASSERT_EQ(text, whole_text(world, bytes.substr(0, bytes.size() - hidden), last)) << what;
      ASSERT_EQ(stop_string(told.generation, &index).status, PROOFINFER_E_STATE);
    }
  }
  EXPECT_GT(stopped, 1000u);
  EXPECT_LT(stopped, 2800u);
}

TEST(GenerationStops, a_stop_token_comes_before_a_string_and_lets_what_was_held_out) {
  SmallWorld world;
  Options options = make_options();
  set_tokens(options, "stop_tokens", {kAb});
  set_stop_strings(options, {"aab"});
  Told told(world, options);
  EXPECT_EQ(told.tell(kA).text, "");
  Step step = told.tell(kAb);
  EXPECT_EQ(step.reason, PROOFINFER_STOP_TOKEN);
  EXPECT_EQ(step.text, "a") << "the stop token's own text is not looked at";
}

TEST(GenerationStops, a_string_comes_before_length_and_context) {
  SmallWorld world;
  Options options = make_options();
  set(options, "max_tokens", 1);
  set_stop_strings(options, {"b"});
  Told told(world, options);
  Step step = told.tell(kAb);
  EXPECT_EQ(step.reason, PROOFINFER_STOP_STRING);
  EXPECT_EQ(step.text, "a");
}

TEST(GenerationStops, the_prompt_is_not_searched) {
  SmallWorld world;
  Options options = make_options();
  set_stop_strings(options, {"ab"});
  Told told(world, options);  // the prompt is "a"
  EXPECT_EQ(told.tell(261).text, "b");
}

TEST(GenerationStops, half_a_character_before_a_stop_string_is_flushed_as_one_replacement) {
  SmallWorld world;
  Options options = make_options();
  set_stop_strings(options, {"\xA9z"});
  Told told(world, options);
  EXPECT_EQ(told.tell(byte_token('\xC3')).text, "");
  EXPECT_EQ(told.tell(byte_token('\xA9')).text, "");
  Step step = told.tell(byte_token('z'));
  EXPECT_EQ(step.text, "\xEF\xBF\xBD");
  EXPECT_EQ(step.reason, PROOFINFER_STOP_STRING);
}

TEST(GenerationStops, a_sampled_text_stops_where_the_same_text_without_the_string_has_it) {
  SmallWorld world;
  auto story = [&](const Strings &strings, int32_t *reason) {
    Options options = make_options();
    set_f64(options, "temperature", 1.0);
    set(options, "max_tokens", 200);
    set_tokens(options, "stop_tokens", {});
    set_stop_strings(options, strings);
    Session session = make_session(world.model);
    Sampler sampler = make_sampler(small_shape().vocab(), options.get());
    std::vector<uint32_t> letters((size_t(small_shape().vocab()) + 31) / 32, 0);
    for (int32_t id = 3 + 'a'; id <= 3 + 'z'; id++) letters[size_t(id) / 32] |= 1u << id % 32;
    EXPECT_TRUE(answer_of(proofinfer_sampler_set_mask, sampler.get(), letters.data(), letters.size()).ok());
    Generation generation = make_generation(session, world.tokenizer, sampler, {1}, options.get());
    std::string text;
    *reason = PROOFINFER_STOP_NONE;
    while (*reason == PROOFINFER_STOP_NONE) {
      Step step = next(generation);
      text += step.text;
      *reason = step.reason;
    }
    return text;
  };
  int32_t reason = 0;
  const std::string whole = story({}, &reason);
  EXPECT_EQ(reason, PROOFINFER_STOP_LENGTH);
  size_t tried = 0;
  for (size_t begin = whole.size() / 2; begin + 3 < whole.size(); begin += 17) {
    std::string stop = whole.substr(begin, 3);
    EXPECT_EQ(story({stop, "never there"}, &reason), whole.substr(0, whole.find(stop)));
    EXPECT_EQ(reason, PROOFINFER_STOP_STRING);
    tried++;
  }
  EXPECT_GT(tried, 2u);
}

TEST(GenerationStops, log_probabilities_are_those_of_the_logits_that_the_token_came_from) {
  SmallWorld world;
  const size_t vocab = size_t(small_shape().vocab());
  for (int64_t kept : {int64_t(1), int64_t(7), int64_t(1000)}) {
    Options options = make_options();
    set_f64(options, "temperature", 1.3);
    set_f64(options, "repetition_penalty", 1.5);
    set(options, "logprobs", kept);
    Told told(world, options);
    float logprob = 0;
    std::vector<int32_t> tokens(1000), expected(1000);
    std::vector<float> logprobs(1000), expected_logprobs(1000);
    size_t needed = 0;
    auto get = [&](size_t capacity) {
      return answer_of(proofinfer_generation_logprobs, told.generation.get(), &logprob, tokens.data(), logprobs.data(), capacity, &needed);
    };
    EXPECT_EQ(get(1000).message, "the generation has yielded no token yet");
    const size_t count = std::min<size_t>(size_t(kept), vocab);
    for (int i = 0; i < 20; i++) {
      Step step = i % 5 == 4 ? told.tell(kA) : next(told.generation, i % 3 == 0);
      if (step.reason != PROOFINFER_STOP_NONE) break;
      EXPECT_EQ(get(count - 1).status, PROOFINFER_E_BUFFER);
      EXPECT_EQ(needed, count);
      ASSERT_TRUE(get(1000).ok());
      ASSERT_EQ(needed, count);
      std::vector<float> x = logits(told.session, told.position() - 1);
      ASSERT_TRUE(answer_of(proofinfer_logits_top, x.data(), x.size(), count, expected.data(), expected_logprobs.data()).ok());
      EXPECT_EQ(Ids(tokens.begin(), tokens.begin() + std::ptrdiff_t(count)),
                Ids(expected.begin(), expected.begin() + std::ptrdiff_t(count)));
      EXPECT_EQ(std::memcmp(logprobs.data(), expected_logprobs.data(), count * 4), 0);
      float own = 0;
      ASSERT_TRUE(
          answer_of(proofinfer_logits_logprobs, x.data(), x.size(), static_cast<const int32_t *>(&step.token), size_t(1), &own).ok());
      EXPECT_EQ(own, logprob);
    }
  }
  Told without(world, make_options());
  next(without.generation);
  float logprob = 0;
  size_t needed = 0;
  EXPECT_EQ(answer_of(proofinfer_generation_logprobs, without.generation.get(), &logprob, static_cast<int32_t *>(nullptr),
                      static_cast<float *>(nullptr), size_t(0), &needed)
                .message,
            "the generation was made with the option logprobs at 0");
}

TEST(GenerationStops, a_pending_token_has_no_log_probabilities_and_no_stop_string_yet) {
  SmallWorld world;
  Options options = make_options();
  set(options, "logprobs", 2);
  set_stop_strings(options, {"b"});
  Told told(world, options);
  ASSERT_TRUE(answer_of(proofinfer_generation_force, told.generation.get(), kAb).ok());
  int32_t token = 0, reason = 0, tokens[2];
  size_t needed = 0, index = 7;
  float logprob = 0, logprobs[2];
  ASSERT_EQ(answer_of(proofinfer_generation_next, told.generation.get(), nullptr, &token, static_cast<char *>(nullptr), size_t(0), &needed,
                      &reason)
                .status,
            PROOFINFER_E_BUFFER);
  auto get = [&] {
    return answer_of(proofinfer_generation_logprobs, told.generation.get(), &logprob, static_cast<int32_t *>(tokens),
                     static_cast<float *>(logprobs), size_t(2), &needed);
  };
  EXPECT_EQ(get().status, PROOFINFER_E_STATE);
  EXPECT_EQ(stop_string(told.generation, &index).status, PROOFINFER_E_STATE);
  EXPECT_EQ(next(told.generation).text, "a");
  EXPECT_TRUE(get().ok());
  EXPECT_TRUE(stop_string(told.generation, &index).ok());
  EXPECT_EQ(index, 0u);
}

TEST(GenerationStops, forced_tokens_join_the_window_of_the_penalties) {
  SmallWorld world;
  Options options = make_options();
  set_f64(options, "presence_penalty", 1000);
  set_tokens(options, "stop_tokens", {});
  Told told(world, options);
  std::set<int32_t> seen;
  for (int i = 0; i < 30; i++) {
    Step step = i % 2 ? next(told.generation) : told.tell(kA + i / 2 % 3);
    if (i % 2) {
      EXPECT_EQ(seen.count(step.token), 0u) << "greedy, and yet none comes again";
    }
    seen.insert(step.token);
  }
}

TEST(GenerationStops, a_mask_a_step_drives_a_generation_and_a_dead_end_can_be_mended) {
  SmallWorld world;
  Options options = make_options();
  set_f64(options, "temperature", 1.0);
  Told told(world, options);
  auto allow = [&](const Ids &ids) {
    std::vector<uint32_t> words((size_t(small_shape().vocab()) + 31) / 32, 0);
    for (int32_t id : ids) words[size_t(id) / 32] |= 1u << id % 32;
    EXPECT_TRUE(answer_of(proofinfer_sampler_set_mask, told.sampler.get(), words.data(), words.size()).ok());
  };
  std::string text;
  for (char letter : std::string("{\"a\":[1]}")) {
    allow({byte_token(letter)});
    text += next(told.generation).text;
  }
  EXPECT_EQ(text, "{\"a\":[1]}");
  allow({});
  int32_t token = 0, reason = 0;
  char buffer[64];
  size_t needed = 0, position = told.position();
  EXPECT_EQ(answer_of(proofinfer_generation_next, told.generation.get(), nullptr, &token, static_cast<char *>(buffer), sizeof(buffer),
                      &needed, &reason)
                .status,
            PROOFINFER_E_STATE);
  EXPECT_EQ(told.position(), position + 1) << "the token before was appended";
  allow({kA});
  EXPECT_EQ(next(told.generation).text, "a");
  EXPECT_EQ(told.position(), position + 1);
}

TEST(GenerationStops, in_a_scheduler_masks_stop_strings_and_log_probabilities_are_those_of_running_alone) {
  SmallWorld world;
  Options options = make_options();
  set_f64(options, "temperature", 1.5);
  set_f64(options, "frequency_penalty", 0.3);
  set(options, "logprobs", 3);
  set(options, "max_tokens", 60);
  set_tokens(options, "stop_tokens", {});
  set_stop_strings(options, {"zq", "b0b"});
  proofinfer_scheduler *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_scheduler_create, world.model.get(), world.tokenizer.get(), options.get(), &made).ok());
  Scheduler scheduler(made);
  Told alone(world, options), added(world, options);
  uint64_t number = 0, whose = 0, other = 0;
  const int32_t prompt[] = {kA, kAb};
  ASSERT_TRUE(answer_of(proofinfer_scheduler_add, scheduler.get(), added.generation.get(), &number).ok());
  ASSERT_TRUE(
      answer_of(proofinfer_scheduler_submit, scheduler.get(), static_cast<const int32_t *>(prompt), size_t(2), options.get(), &other).ok());
  auto logprobs_of = [](const Generation &generation) {
    float values[4] = {};
    int32_t tokens[3];
    size_t needed = 0;
    EXPECT_TRUE(answer_of(proofinfer_generation_logprobs, generation.get(), &values[3], static_cast<int32_t *>(tokens),
                          static_cast<float *>(values), size_t(3), &needed)
                    .ok());
    return std::vector<float>(values, values + 4);
  };
  Random random{61};
  int32_t reason = PROOFINFER_STOP_NONE;
  size_t steps = 0;
  while (reason == PROOFINFER_STOP_NONE) {
    std::vector<uint32_t> mask((size_t(small_shape().vocab()) + 31) / 32);
    for (uint32_t &word : mask) word = random.below(1u << 31) | 1u << random.below(32);
    for (const Told *told : {&alone, &added})
      ASSERT_TRUE(answer_of(proofinfer_sampler_set_mask, told->sampler.get(), mask.data(), mask.size()).ok());
    Step expected = next(alone.generation);
    ASSERT_TRUE(answer_of(proofinfer_scheduler_step, scheduler.get(), nullptr, nullptr).ok());
    char text[512];
    size_t needed = 0;
    int32_t token = -5;
    Answer answer = answer_of(proofinfer_scheduler_next, scheduler.get(), number, &whose, &token, text, sizeof(text), &needed, &reason);
    ASSERT_TRUE(answer.ok()) << answer;
    ASSERT_EQ(whose, number);
    ASSERT_EQ(token, expected.token);
    ASSERT_EQ(std::string(text, needed), expected.text);
    ASSERT_EQ(reason, expected.reason);
    ASSERT_EQ(logprobs_of(added.generation), logprobs_of(alone.generation));
    steps++;
  }
  EXPECT_GT(steps, 5u);
}

TEST(GenerationStops, memory_may_run_out_while_one_is_made) {
  SmallWorld world;
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  set(options, "logprobs", 5);
  set_stop_strings(options, {"one", "two"});
  ASSERT_TRUE(make_generation(session, world.tokenizer, sampler, {1, 2}, options.get()));
  uint64_t calls = allocator.calls();
  EXPECT_GE(calls, 9u);
  for (uint64_t i = 0; i < calls; i++) {
    allocator.fail_call(i);
    Answer answer;
    make_generation(session, world.tokenizer, sampler, {1, 2}, options.get(), &answer);
    EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
    EXPECT_EQ(allocator.held_blocks(), 0u);
  }
}

}  // namespace proofinfer_test
