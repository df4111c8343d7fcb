// Float32 and Q8_0 checkpoints against the recorded figures through the C API: every logit bit, greedy and sampled ids, for every kernel set
// and several thread counts, whatever the split of the tokens into appends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"
#include "support/sha256.h"

namespace proofinfer_test {

using nlohmann::json;

namespace {

// The float32 cases, then those of version 2.
const std::vector<json> &cases() {
  static const std::vector<json> all = [] {
    std::vector<json> both = golden("run_c_f32.json")["cases"];
    const json quantized = golden("runq_c_q80.json");
    both.insert(both.end(), quantized["cases"].begin(), quantized["cases"].end());
    return both;
  }();
  return all;
}

bool is_quantized(const json &c) { return c.contains("group_size"); }

Shape shape_of(const json &c) {
  const json &s = c["shape"];
  return {s["dim"], s["hidden_dim"], s["n_layers"], s["n_heads"], s["n_kv_heads"], s["vocab_size"], s["seq_len"]};
}

// The checkpoint's bytes: generated, or read where they are another project's. None: the file is absent.
std::optional<std::vector<uint8_t>> checkpoint_of(const json &c) {
  if (is_quantized(c)) return version2_checkpoint(shape_of(c), c["seed"], c["group_size"]);
  if (c["seed"].is_number()) return legacy_checkpoint(shape_of(c), c["seed"]);
  std::optional<std::string> path = model_path(c["name"].get<std::string>() + ".bin");
  return path ? read_file(*path) : std::nullopt;
}

Model open_with(const std::vector<uint8_t> &bytes, const std::string &isa, int64_t threads) {
  Options options = make_options();
  set_text(options, "isa", isa);
  set(options, "threads", threads);
  set_u64(options, "share_from_bytes", 0);  // however small the model is
  return open_model(bytes, options.get());
}

// The bytes of the logits of positions [begin, end) as a little-endian file would have them.
std::vector<float> logits_of(const Session &session, size_t begin, size_t end) {
  std::vector<float> all;
  for (size_t position = begin; position < end; position++) {
    std::vector<float> row = logits(session, position);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

std::string digest(const std::vector<float> &values) {
  std::vector<uint8_t> bytes;
  bytes.reserve(values.size() * 4);
  for (float value : values) put_f32(&bytes, value);
  return sha256_hex(bytes);
}

std::vector<int32_t> argmax_rows(const std::vector<float> &values, size_t columns) {
  std::vector<int32_t> ids;
  for (auto row = values.begin(); row != values.end(); row += std::ptrdiff_t(columns))
    ids.push_back(int32_t(std::max_element(row, row + std::ptrdiff_t(columns)) - row));
  return ids;
}

std::vector<std::string> hex_of(const float *values, size_t count) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], 4);
    char text[9];
    std::snprintf(text, sizeof(text), "%08x", bits);
    texts.push_back(text);
  }
  return texts;
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A tokenizer that has a piece for every id; what the pieces say does not matter here.
Tokenizer any_tokenizer(int32_t vocab_size) {
  std::vector<Piece> pieces;
  for (int32_t id = 0; id < vocab_size; id++) pieces.push_back({"t" + std::to_string(id), 0.0f});
  return open_tokenizer(tokenizer_file(pieces), vocab_size);
}

// `count` ids that a generation yields from token 1 on, with an empty stop set.
std::vector<int32_t> generate(const Model &model, const Tokenizer &tokenizer, double temperature, double top_p, uint64_t seed,
                              size_t count) {
  Options options = make_options();
  set_f64(options, "temperature", temperature);
  set_f64(options, "top_p", top_p);
  set_u64(options, "seed", seed);
  set(options, "max_tokens", int64_t(count));
  set_tokens(options, "stop_tokens", {});
  Session session = make_session(model, options.get());
  Sampler sampler = make_sampler(int32_t(model_i64(model, PROOFINFER_MODEL_VOCAB_SIZE)), options.get());
  const int32_t first = 1;
  proofinfer_generation *made = nullptr;
  Answer answer =
      answer_of(proofinfer_generation_create, session.get(), tokenizer.get(), sampler.get(), &first, size_t(1), options.get(), &made);
  EXPECT_TRUE(answer.ok()) << answer;
  Generation generation(made);
  std::vector<int32_t> ids;
  for (int32_t stop = PROOFINFER_STOP_NONE; answer.ok() && stop == PROOFINFER_STOP_NONE;) {
    char text[256];
    size_t needed = 0;
    int32_t id = -1;
    answer = answer_of(proofinfer_generation_next, generation.get(), nullptr, &id, text, sizeof(text), &needed, &stop);
    EXPECT_TRUE(answer.ok()) << answer;
    if (id >= 0) ids.push_back(id);
  }
  return ids;
}

}  // namespace

class Golden : public testing::TestWithParam<size_t> {
 protected:
  const json &c() const { return cases()[GetParam()]; }
};

#define CHECKPOINT_OR_SKIP(variable)                                                                                \
  std::optional<std::vector<uint8_t>> variable##_found = checkpoint_of(c());                                        \
  if (!variable##_found) PROOFINFER_SKIP("real-models") << c()["name"] << ".bin is absent (set PROOFINFER_MODELS)"; \
  const std::vector<uint8_t> &variable = *variable##_found

TEST_P(Golden, file_is_the_recorded_one) {
  CHECKPOINT_OR_SKIP(bytes);
  if (!c().contains("file_sha256")) return;  // stories260K: its logits tell
  EXPECT_EQ(sha256_hex(bytes), c()["file_sha256"]);
}

TEST_P(Golden, logits_are_equal_appended_at_once_and_one_by_one) {
  CHECKPOINT_OR_SKIP(bytes);
  const std::vector<int32_t> tokens = c()["tokens"];
  // Sanitizers and builds without optimisation are an order of magnitude slower: there the largest models run once a kernel set.
  const bool all_threads = std::getenv("PROOFINFER_QUICK_FIGURES") == nullptr || bytes.size() < (size_t(4) << 20);
  for (const std::string &isa : available_isas()) {
    for (int64_t threads : all_threads ? std::vector<int64_t>{1, 2, 3, 7} : std::vector<int64_t>{3}) {
      SCOPED_TRACE(isa + ", threads " + std::to_string(threads));
      Model model = open_with(bytes, isa, threads);
      ASSERT_TRUE(model);
      EXPECT_STREQ(proofinfer_model_get_text(model.get(), PROOFINFER_MODEL_ISA), isa.c_str());
      size_t vocab_size = size_t(model_i64(model, PROOFINFER_MODEL_VOCAB_SIZE));

      Session at_once = make_session(model);
      ASSERT_TRUE(append(at_once, tokens).ok());
      std::vector<float> all = logits_of(at_once, 0, tokens.size());
      EXPECT_EQ(digest(all), c()["logits_sha256"]);
      EXPECT_EQ(argmax_rows(all, vocab_size), c()["argmax"].get<std::vector<int32_t>>());
      std::vector<std::string> last = c()["last_logits_hex"];
      EXPECT_EQ(hex_of(&all[all.size() - vocab_size], last.size()), last);

      Session one_by_one = make_session(model);
      std::vector<float> collected;
      for (size_t i = 0; i < tokens.size(); i++) {
        ASSERT_TRUE(append(one_by_one, {tokens[i]}, PROOFINFER_LOGITS_LAST).ok());
        std::vector<float> row = logits(one_by_one, i);
        collected.insert(collected.end(), row.begin(), row.end());
      }
      EXPECT_EQ(digest(collected), c()["logits_sha256"]);
    }
  }
}

TEST_P(Golden, greedy_and_sampled_ids_are_equal) {
  CHECKPOINT_OR_SKIP(bytes);
  for (const std::string &isa : available_isas()) {
    SCOPED_TRACE(isa);
    Model model = open_with(bytes, isa, 2);
    ASSERT_TRUE(model);
    Tokenizer tokenizer = any_tokenizer(int32_t(model_i64(model, PROOFINFER_MODEL_VOCAB_SIZE)));
    ASSERT_TRUE(tokenizer);
    const std::vector<int32_t> greedy = c()["greedy_from_1"];
    EXPECT_EQ(generate(model, tokenizer, 0.0, 0.9, 1, greedy.size()), greedy);
    for (const json &s : c()["sampled"]) {
      const std::vector<int32_t> ids = s["ids"];
      EXPECT_EQ(generate(model, tokenizer, s["temperature"], s["top_p"], s["seed"], ids.size()), ids) << s;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::Range(size_t(0), cases().size()), [](const testing::TestParamInfo<size_t> &info) {
  return (is_quantized(cases()[info.param]) ? "q80_" : "f32_") + cases()[info.param]["name"].get<std::string>();
});

TEST(GoldenCases, all_are_there) {
  EXPECT_EQ(std::count_if(cases().begin(), cases().end(), is_quantized), 5);
  EXPECT_EQ(cases().size(), 9u + 5u);
}

TEST(GoldenVersion1, file_gives_the_logits_of_the_legacy_file) {
  for (const json &c : cases()) {
    if (is_quantized(c) || !c["seed"].is_number() || c["name"] == "stories15M_shape") continue;
    Model model = open_model(version1_checkpoint(shape_of(c), c["seed"]));
    ASSERT_TRUE(model);
    EXPECT_STREQ(proofinfer_model_get_text(model.get(), PROOFINFER_MODEL_FORMAT), "llama2.c version 1");
    Session session = make_session(model);
    const std::vector<int32_t> tokens = c["tokens"];
    ASSERT_TRUE(append(session, tokens).ok());
    EXPECT_EQ(digest(logits_of(session, 0, tokens.size())), c["logits_sha256"]) << c["name"];
  }
}

// Splits of one sequence: a model with grouped heads and room for more than one KV page.
class Splits : public testing::TestWithParam<std::string> {
 protected:
  static constexpr size_t kCount = 80;

  void SetUp() override {
    const json &c = *std::find_if(cases().begin(), cases().end(), [](const json &one) { return one["name"] == "gqa4"; });
    Shape shape = shape_of(c);
    ASSERT_GE(size_t(shape.seq_len), kCount);
    ASSERT_GT(shape.n_heads, shape.n_kv_heads);
    bytes_ = legacy_checkpoint(shape, c["seed"]);
    for (size_t i = 0; i < kCount; i++) tokens_.push_back(int32_t(1 + i * 251 % size_t(shape.vocab() - 1)));
    model_ = open_with(bytes_, GetParam(), 2);
    ASSERT_TRUE(model_);
    Session session = make_session(model_);
    for (size_t i = 0; i < kCount; i++) {
      ASSERT_TRUE(append(session, {tokens_[i]}, PROOFINFER_LOGITS_LAST).ok());
      rows_.push_back(logits(session, i));
    }
  }

  // Appends [begin, end) in one call and compares the logits of every position in it.
  void append_and_compare(const Session &session, size_t begin, size_t end) {
    std::vector<int32_t> part(tokens_.begin() + std::ptrdiff_t(begin), tokens_.begin() + std::ptrdiff_t(end));
    ASSERT_TRUE(append(session, part).ok());
    for (size_t position = begin; position < end; position++)
      ASSERT_TRUE(same_bits(logits(session, position), rows_[position]))
          << "position " << position << " of [" << begin << ", " << end << ")";
  }

  std::vector<uint8_t> bytes_;
  std::vector<int32_t> tokens_;
  Model model_;
  std::vector<std::vector<float>> rows_;  // the logits of each position, from appends of one token
};

TEST_P(Splits, parts_of_any_length_give_the_bits_of_single_tokens) {
  const std::vector<std::vector<size_t>> ends = {
      {64},         {7, 64},      {15, 80},     {16, 80},         {17, 80},         {63, 80},    {64, 80},     {65, 80},
      {15, 63, 80}, {16, 64, 80}, {17, 65, 80}, {15, 16, 17, 80}, {63, 64, 65, 80}, {1, 79, 80}, {48, 49, 80}, {80}};
  for (const std::vector<size_t> &cuts : ends) {
    Session session = make_session(model_);
    size_t begin = 0;
    for (size_t end : cuts) {
      append_and_compare(session, begin, end);
      begin = end;
    }
  }
}

TEST_P(Splits, rewinding_to_every_position_gives_the_same_bits_again) {
  Session session = make_session(model_);
  append_and_compare(session, 0, kCount);
  for (size_t k = 0; k <= kCount; k++) {
    Answer answer = answer_of(proofinfer_session_rewind, session.get(), k);
    ASSERT_TRUE(answer.ok()) << answer;
    EXPECT_EQ(proofinfer_session_position(session.get()), k);
    if (k < kCount) append_and_compare(session, k, kCount);
  }
}

TEST_P(Splits, what_was_written_before_a_rewind_leaves_no_trace) {
  Session session = make_session(model_);
  for (size_t k : {1, 15, 16, 17, 63, 64, 65}) {
    std::vector<int32_t> others(kCount - k, 3);
    ASSERT_TRUE(answer_of(proofinfer_session_rewind, session.get(), size_t(0)).ok());
    append_and_compare(session, 0, k);
    ASSERT_TRUE(append(session, others).ok());
    ASSERT_TRUE(answer_of(proofinfer_session_rewind, session.get(), k).ok());
    append_and_compare(session, k, kCount);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Splits, testing::ValuesIn(available_isas()),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

}  // namespace proofinfer_test
