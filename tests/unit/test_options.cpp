// Options: types, names and bounds are checked at the setter, defaults are what the query says, each function reads its own scope only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "support/small_world.h"

namespace proofinfer_test {

namespace {

Answer set_i64_status(const Options &o, const std::string &name, int64_t v) {
  return answer_of(proofinfer_options_set_i64, o.get(), name.data(), name.size(), v);
}
Answer set_u64_status(const Options &o, const std::string &name, uint64_t v) {
  return answer_of(proofinfer_options_set_u64, o.get(), name.data(), name.size(), v);
}
Answer set_f64_status(const Options &o, const std::string &name, double v) {
  return answer_of(proofinfer_options_set_f64, o.get(), name.data(), name.size(), v);
}
Answer set_text_status(const Options &o, const std::string &name, const std::string &v) {
  return answer_of(proofinfer_options_set_text, o.get(), name.data(), name.size(), v.data(), v.size());
}
Answer set_tokens_status(const Options &o, const std::string &name, const std::vector<int32_t> &v) {
  return answer_of(proofinfer_options_set_tokens, o.get(), name.data(), name.size(), v.data(), v.size());
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

TEST(Options, are_listed_with_name_type_default_bounds_and_scope) {
  struct Row {
    int32_t type;
    std::string default_text, scope;
  };
  const std::map<std::string, Row> expected = {
      {"threads", {PROOFINFER_OPTION_I64, "1", "model"}},
      {"isa", {PROOFINFER_OPTION_TEXT, "auto", "model,session,batch,scheduler,sampler"}},
      {"memory_limit_bytes", {PROOFINFER_OPTION_U64, "0", "model,tokenizer,session,sampler,batch,scheduler"}},
      {"context_length", {PROOFINFER_OPTION_I64, "0", "session"}},
      {"temperature", {PROOFINFER_OPTION_F64, "0", "sampler"}},
      {"top_p", {PROOFINFER_OPTION_F64, "0.9", "sampler"}},
      {"top_k", {PROOFINFER_OPTION_I64, "0", "sampler"}},
      {"typical_p", {PROOFINFER_OPTION_F64, "0", "sampler"}},
      {"min_p", {PROOFINFER_OPTION_F64, "0", "sampler"}},
      {"repetition_penalty", {PROOFINFER_OPTION_F64, "1", "sampler"}},
      {"frequency_penalty", {PROOFINFER_OPTION_F64, "0", "sampler"}},
      {"presence_penalty", {PROOFINFER_OPTION_F64, "0", "sampler"}},
      {"penalty_window", {PROOFINFER_OPTION_I64, "64", "sampler"}},
      {"seed", {PROOFINFER_OPTION_U64, "1", "sampler"}},
      {"max_generations", {PROOFINFER_OPTION_I64, "64", "scheduler"}},
      {"prefill_chunk", {PROOFINFER_OPTION_I64, "32", "scheduler"}},
      {"max_tokens", {PROOFINFER_OPTION_I64, "0", "generation"}},
      {"stop_tokens", {PROOFINFER_OPTION_TOKENS, "", "generation"}},
      {"stop_strings", {PROOFINFER_OPTION_TEXTS, "", "generation"}},
      {"logprobs", {PROOFINFER_OPTION_I64, "0", "generation"}},
  };
  std::set<std::string> found;
  for (size_t i = 0; i < proofinfer_option_count(); i++) {
    std::string name = proofinfer_option_name(i);
    found.insert(name);
    ASSERT_NE(proofinfer_option_default(i), nullptr) << name;
    ASSERT_NE(proofinfer_option_lowest(i), nullptr) << name;
    ASSERT_NE(proofinfer_option_highest(i), nullptr) << name;
    ASSERT_NE(proofinfer_option_scope(i), nullptr) << name;
    auto row = expected.find(name);
    if (row == expected.end()) continue;
    EXPECT_EQ(proofinfer_option_type(i), row->second.type) << name;
    EXPECT_EQ(proofinfer_option_scope(i), row->second.scope) << name;
    if (row->second.type != PROOFINFER_OPTION_TOKENS) {
      EXPECT_EQ(proofinfer_option_default(i), row->second.default_text) << name;
    }
    if (row->second.type < PROOFINFER_OPTION_TEXT) {
      EXPECT_STRNE(proofinfer_option_lowest(i), "") << name;
      EXPECT_STRNE(proofinfer_option_highest(i), "") << name;
    }
  }
  for (const auto &[name, row] : expected) EXPECT_EQ(found.count(name), 1u) << name;
}

TEST(Options, queries_outside_the_range_give_nothing) {
  for (size_t index : {proofinfer_option_count(), SIZE_MAX}) {
    EXPECT_EQ(proofinfer_option_name(index), nullptr);
    EXPECT_EQ(proofinfer_option_type(index), 0);
    EXPECT_EQ(proofinfer_option_default(index), nullptr);
    EXPECT_EQ(proofinfer_option_lowest(index), nullptr);
    EXPECT_EQ(proofinfer_option_highest(index), nullptr);
    EXPECT_EQ(proofinfer_option_scope(index), nullptr);
  }
}

TEST(Options, integer_bounds_are_what_the_query_says) {
  Options options = make_options();
  for (size_t i = 0; i < proofinfer_option_count(); i++) {
    if (proofinfer_option_type(i) != PROOFINFER_OPTION_I64) continue;
    std::string name = proofinfer_option_name(i);
    int64_t lowest = std::stoll(proofinfer_option_lowest(i)), highest = std::stoll(proofinfer_option_highest(i));
    EXPECT_TRUE(set_i64_status(options, name, lowest).ok()) << name;
    EXPECT_TRUE(set_i64_status(options, name, highest).ok()) << name;
    Answer below = set_i64_status(options, name, lowest - 1);
    EXPECT_EQ(below.status, PROOFINFER_E_ARGUMENT) << name;
    EXPECT_TRUE(below.says(name) && below.says(std::to_string(lowest)) && below.says(std::to_string(lowest - 1))) << below;
    if (highest != INT64_MAX) {
      EXPECT_EQ(set_i64_status(options, name, highest + 1).status, PROOFINFER_E_ARGUMENT) << name;
    }
  }
}

TEST(Options, sizes_and_seeds_may_be_any_and_the_query_says_so) {
  Options options = make_options();
  for (size_t i = 0; i < proofinfer_option_count(); i++) {
    if (proofinfer_option_type(i) != PROOFINFER_OPTION_U64) continue;
    const std::string name = proofinfer_option_name(i);
    EXPECT_STREQ(proofinfer_option_lowest(i), "0") << name;
    EXPECT_EQ(proofinfer_option_highest(i), std::to_string(UINT64_MAX)) << name;
    EXPECT_TRUE(set_u64_status(options, name, 0).ok()) << name;
    EXPECT_TRUE(set_u64_status(options, name, UINT64_MAX).ok()) << name;
  }
}

TEST(Options, real_bounds_are_what_the_query_says) {
  Options options = make_options();
  for (size_t i = 0; i < proofinfer_option_count(); i++) {
    if (proofinfer_option_type(i) != PROOFINFER_OPTION_F64) continue;
    std::string name = proofinfer_option_name(i), lowest_text = proofinfer_option_lowest(i), highest_text = proofinfer_option_highest(i);
    double lowest = std::stod(lowest_text), highest = std::stod(highest_text);
    for (double inside : {lowest, highest, std::stod(proofinfer_option_default(i))})
      EXPECT_TRUE(set_f64_status(options, name, inside).ok()) << name << " " << inside;
    for (double outside : {std::nextafter(lowest, -kInf), std::nextafter(highest, kInf), kNan, kInf, -kInf}) {
      Answer answer = set_f64_status(options, name, outside);
      EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << name << " " << outside;
      EXPECT_TRUE(answer.says("option " + name + " is ") && answer.says("expected " + lowest_text + " to " + highest_text)) << answer;
    }
  }
}

TEST(Options, hostile_numbers_are_refused) {
  Options options = make_options();
  for (int64_t threads : {int64_t(0), int64_t(-1), int64_t(1000000), INT64_MAX, INT64_MIN})
    EXPECT_EQ(set_i64_status(options, "threads", threads).status, PROOFINFER_E_ARGUMENT) << threads;
  EXPECT_TRUE(set_i64_status(options, "threads", 64).ok());
  for (double temperature : {kNan, -1.0, kInf, -kInf, -1e-300})
    EXPECT_EQ(set_f64_status(options, "temperature", temperature).status, PROOFINFER_E_ARGUMENT) << temperature;
  for (double top_p : {kNan, -0.1, 1.1, kInf, -kInf})
    EXPECT_EQ(set_f64_status(options, "top_p", top_p).status, PROOFINFER_E_ARGUMENT) << top_p;
  for (double top_p : {0.0, 1.0, 0.5}) EXPECT_TRUE(set_f64_status(options, "top_p", top_p).ok()) << top_p;
  for (int64_t tokens : {int64_t(-1), INT64_MIN}) EXPECT_EQ(set_i64_status(options, "max_tokens", tokens).status, PROOFINFER_E_ARGUMENT);
  EXPECT_TRUE(set_i64_status(options, "max_tokens", 1000000).ok());
}

TEST(Options, temperature_of_minus_zero_and_tiny_values_are_greedy_or_finite) {
  Options options = make_options();
  const float values[4] = {0.5f, 3.0f, -1.0f, 2.0f};
  for (double temperature : {-0.0, 0.0, 1e-40, 5e-324}) {
    Answer set_answer = set_f64_status(options, "temperature", temperature);
    if (!set_answer.ok()) continue;  // refusing is right too: nothing is guessed
    Sampler sampler = make_sampler(4, options.get());
    int32_t token = -1;
    Answer answer = answer_of(proofinfer_sampler_sample, sampler.get(), values, size_t(4), &token);
    if (answer.ok()) {
      EXPECT_EQ(token, 1) << temperature;
    } else {
      EXPECT_EQ(answer.status, PROOFINFER_E_NOT_FINITE) << temperature;
    }
  }
}

TEST(Options, unknown_names_and_other_types_are_errors_that_say_so) {
  Options options = make_options();
  Answer answer = set_i64_status(options, "thread", 2);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  EXPECT_TRUE(answer.says("thread")) << answer;
  EXPECT_EQ(set_i64_status(options, "", 2).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_i64_status(options, "threadsX", 2).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_i64_status(options, std::string("threads\0", 8), 2).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(answer_of(proofinfer_options_set_i64, options.get(), static_cast<const char *>(nullptr), size_t(7), int64_t(2)).status,
            PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_f64_status(options, "threads", 2).status, PROOFINFER_E_ARGUMENT);
  EXPECT_TRUE(set_f64_status(options, "threads", 2).says("option threads has type ")) << set_f64_status(options, "threads", 2);
  EXPECT_EQ(set_u64_status(options, "threads", 2).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_text_status(options, "threads", "2").status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_tokens_status(options, "threads", {2}).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_i64_status(options, "stop_tokens", 2).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_text_status(options, "isa", "mmx").status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(set_text_status(options, "isa", "").status, PROOFINFER_E_ARGUMENT);
  EXPECT_TRUE(set_text_status(options, "isa", "auto").ok());
  for (const std::string &isa : available_isas()) EXPECT_TRUE(set_text_status(options, "isa", isa).ok()) << isa;
}

TEST(Options, stop_tokens_have_a_most_and_may_be_none) {
  Options options = make_options();
  EXPECT_TRUE(set_tokens_status(options, "stop_tokens", {}).ok());
  EXPECT_TRUE(set_tokens_status(options, "stop_tokens", std::vector<int32_t>(1024, 2)).ok());
  EXPECT_EQ(set_tokens_status(options, "stop_tokens", std::vector<int32_t>(1025, 2)).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(
      answer_of(proofinfer_options_set_tokens, options.get(), "stop_tokens", size_t(11), static_cast<const int32_t *>(nullptr), size_t(3))
          .status,
      PROOFINFER_E_ARGUMENT);
}

TEST(Options, stop_strings_have_a_most_and_may_be_none) {
  Options options = make_options();
  auto set_texts = [&](const std::string &texts, const std::vector<size_t> &bytes) {
    return answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_strings"), texts.data(), bytes.data(),
                     bytes.size());
  };
  EXPECT_TRUE(set_texts("", {}).ok());
  EXPECT_TRUE(set_texts(std::string(64 * 1024, 'x'), std::vector<size_t>(64, 1024)).ok());
  EXPECT_EQ(set_texts(std::string(65, 'x'), std::vector<size_t>(65, 1)).message, "option stop_strings has 65 strings; expected at most 64");
  EXPECT_EQ(set_texts("a", {1, 0}).message, "option stop_strings: string 1 has 0 bytes; expected 1 to 1024");
  EXPECT_EQ(set_texts("a", {SIZE_MAX}).message,
            "option stop_strings: string 0 has " + std::to_string(SIZE_MAX) + " bytes; expected 1 to 1024");
  for (Answer answer : {answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_strings"), "a",
                                  static_cast<const size_t *>(nullptr), size_t(1)),
                        answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_tokens"), "a",
                                  static_cast<const size_t *>(nullptr), size_t(0))})
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
  const size_t one = 1;
  EXPECT_EQ(answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_strings"), static_cast<const char *>(nullptr),
                      &one, size_t(1))
                .status,
            PROOFINFER_E_ARGUMENT);
}

TEST(Options, an_allocator_is_two_functions_or_none) {
  Options options = make_options();
  CountingAllocator allocator;
  allocator.install(options);
  auto allocate = [](void *, size_t, size_t) -> void * { return nullptr; };
  auto release = [](void *, void *, size_t, size_t) {};
  proofinfer_allocate_function allocate_only = allocate;
  proofinfer_release_function release_only = release;
  EXPECT_EQ(answer_of(proofinfer_options_set_allocator, options.get(), allocate_only, proofinfer_release_function(nullptr), nullptr).status,
            PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(answer_of(proofinfer_options_set_allocator, options.get(), proofinfer_allocate_function(nullptr), release_only, nullptr).status,
            PROOFINFER_E_ARGUMENT);
  { SmallWorld world(options.get()); }  // still the counting one
  EXPECT_GT(allocator.calls(), 0u);
  EXPECT_EQ(allocator.held_blocks(), 0u);
  uint64_t calls = allocator.calls();
  EXPECT_TRUE(answer_of(proofinfer_options_set_allocator, options.get(), proofinfer_allocate_function(nullptr),
                        proofinfer_release_function(nullptr), nullptr)
                  .ok());
  { SmallWorld world(options.get()); }
  EXPECT_EQ(allocator.calls(), calls);
}

TEST(Options, all_memory_of_an_object_comes_from_its_allocator_and_goes_back) {
  Options options = make_options();
  CountingAllocator allocator;
  allocator.install(options);
  {
    SmallWorld world(options.get());
    EXPECT_EQ(uint64_t(model_i64(world.model, PROOFINFER_MODEL_MEMORY_BYTES)) <= allocator.held_bytes(), true);
    Session session = make_session(world.model, options.get());
    ASSERT_TRUE(append(session, small_tokens(100)).ok());
    Sampler sampler = make_sampler(small_shape().vocab(), options.get());
    EXPECT_GE(allocator.held_bytes(), proofinfer_session_memory_bytes(session.get()));
  }
  EXPECT_EQ(allocator.held_blocks(), 0u);
  EXPECT_EQ(allocator.held_bytes(), 0u);
}

TEST(Options, a_memory_limit_is_kept) {
  Options options = make_options();
  Model model = open_model(small_checkpoint());
  uint64_t need = uint64_t(model_i64(model, PROOFINFER_MODEL_MEMORY_BYTES));
  set_u64(options, "memory_limit_bytes", need + (64u << 10));  // loading reads through a buffer
  EXPECT_TRUE(open_model(small_checkpoint(), options.get()));
  Answer answer;
  set_u64(options, "memory_limit_bytes", need / 2);
  EXPECT_FALSE(open_model(small_checkpoint(), options.get(), &answer));
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
  EXPECT_TRUE(answer.says(std::to_string(need / 2))) << answer;
  set_u64(options, "memory_limit_bytes", 1);
  EXPECT_FALSE(open_model(small_checkpoint(), options.get(), &answer));
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT);
  EXPECT_FALSE(make_session(model, options.get(), &answer));
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT);
}

// Whatever the limit is, no object holds more of its allocator's memory, and some limit is enough: a session's is what it says that it holds.
TEST(Options, a_memory_limit_counts_the_object_itself) {
  Model model = open_model(small_checkpoint());
  Options options = make_options();
  CountingAllocator allocator;
  allocator.install(options);
  const uint64_t need = proofinfer_session_memory_bytes(make_session(model).get());
  std::vector<uint64_t> too_low = {need / 4, need / 2, need - 1};
  for (uint64_t limit = 1; limit < 2048; limit++) too_low.push_back(limit);
  std::sort(too_low.begin(), too_low.end());
  for (uint64_t limit : too_low) {
    set_u64(options, "memory_limit_bytes", limit);
    Answer answer;
    Session session = make_session(model, options.get(), &answer);
    EXPECT_TRUE(session == nullptr && answer.status == PROOFINFER_E_LIMIT) << limit << " " << answer;
    ASSERT_EQ(allocator.held_blocks(), 0u);
    ASSERT_LE(allocator.peak_bytes(), limit);
  }
  set_u64(options, "memory_limit_bytes", need);
  EXPECT_TRUE(make_session(model, options.get()));
  EXPECT_EQ(allocator.peak_bytes(), need);
}

// Rows of wide models are few, so that activations take about 8 MB.
TEST(Options, activations_of_a_wide_model_take_little_memory) {
  const Model model = open_model(legacy_checkpoint({16, 16384, 1, 2, 2, 16, 128}, 1));
  ASSERT_TRUE(model);
  EXPECT_LT(proofinfer_session_memory_bytes(make_session(model).get()), uint64_t(16) << 20);
}

TEST(Options, a_session_limit_stops_the_logits_of_all_positions_only) {
  SmallWorld world;
  Options options = make_options();
  set(options, "context_length", 256);
  Session free_session = make_session(world.model, options.get());
  set_u64(options, "memory_limit_bytes", proofinfer_session_memory_bytes(free_session.get()) + 1024);
  Session session = make_session(world.model, options.get());
  EXPECT_EQ(append(session, small_tokens(200), PROOFINFER_LOGITS_ALL).status, PROOFINFER_E_LIMIT);
  EXPECT_EQ(proofinfer_session_position(session.get()), 0u);
  EXPECT_TRUE(append(session, small_tokens(200), PROOFINFER_LOGITS_LAST).ok());
}

TEST(Options, context_length_is_at_most_the_models) {
  SmallWorld world;
  Options options = make_options();
  Session by_default = make_session(world.model);
  EXPECT_EQ(proofinfer_session_context_length(by_default.get()), size_t(kSmallContext));
  set(options, "context_length", kSmallContext);
  EXPECT_EQ(proofinfer_session_context_length(make_session(world.model, options.get()).get()), size_t(kSmallContext));
  set(options, "context_length", kSmallContext + 1);
  Answer answer;
  EXPECT_FALSE(make_session(world.model, options.get(), &answer));
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  EXPECT_TRUE(answer.says("513") && answer.says("512")) << answer;
}

TEST(Options, a_header_cannot_ask_for_a_huge_kv_cache) {
  Shape shape = {4, 4, 1, 2, 2, 3, 1000000};
  Model model = open_model(legacy_checkpoint(shape, 1));
  ASSERT_TRUE(model);
  Session session = make_session(model);
  EXPECT_EQ(proofinfer_session_context_length(session.get()), 4096u);
  EXPECT_LT(proofinfer_session_memory_bytes(session.get()), 4u << 20);
}

TEST(Options, are_read_during_the_call_only) {
  Options options = make_options();
  set_f64(options, "temperature", 0.0);
  Sampler sampler = make_sampler(3, options.get());
  set_f64(options, "temperature", 2.0);
  options.reset();
  const float values[3] = {1, 3, 2};
  int32_t token = -1;
  EXPECT_TRUE(answer_of(proofinfer_sampler_sample, sampler.get(), values, size_t(3), &token).ok());
  EXPECT_EQ(token, 1);
}

TEST(Options, a_failed_set_changes_nothing) {
  Options options = make_options();
  set(options, "context_length", 17);
  EXPECT_FALSE(set_i64_status(options, "context_length", -3).ok());
  SmallWorld world;
  EXPECT_EQ(proofinfer_session_context_length(make_session(world.model, options.get()).get()), 17u);
}

// Each thread that loads needs room for 16 rows as the file has them, and a file can be little more than one long row.
TEST(Options, threads_that_load_take_a_sixteenth_of_the_weights_at_the_most) {
  const std::vector<uint8_t> bytes = legacy_checkpoint({2, 100000, 1, 1, 1, 8, 8}, 1);
  Options one = make_options(), many = make_options();
  set(many, "threads", 64);
  set_u64(many, "share_from_bytes", 0);
  for (const Options *options : {&one, &many}) set_u64(*options, "memory_limit_bytes", 24u << 20);
  Model alone = open_model(bytes, one.get()), together = open_model(bytes, many.get());
  ASSERT_TRUE(alone && together);
  Session a = make_session(alone), b = make_session(together);
  ASSERT_TRUE(append(a, {1, 2, 3}).ok() && append(b, {1, 2, 3}).ok());
  EXPECT_EQ(logits(a, 2), logits(b, 2));
}

}  // namespace proofinfer_test
