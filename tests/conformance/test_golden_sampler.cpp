// The sampler against the recorded draws of the reference, ties and borders included.
#include <gtest/gtest.h>

#include <cstring>

#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

using nlohmann::json;

namespace {

std::vector<float> floats_from_hex(const std::string &hex) {
  std::vector<uint8_t> bytes = bytes_from_hex(hex);
  std::vector<float> values(bytes.size() / 4);
  for (size_t i = 0; i < values.size(); i++) {
    uint32_t bits = uint32_t(bytes[4 * i]) << 24 | uint32_t(bytes[4 * i + 1]) << 16 | uint32_t(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
    std::memcpy(&values[i], &bits, 4);
  }
  return values;
}

Options options_of(const json &c) {
  Options options = make_options();
  set_f64(options, "temperature", c["temperature"]);
  set_f64(options, "top_p", c["top_p"]);
  set_u64(options, "seed", c["seed"]);
  return options;
}

}  // namespace

TEST(GoldenSampler, every_case_draws_the_recorded_ids) {
  json file = golden("sampler.json");
  ASSERT_EQ(file["cases"].size(), 96u);
  for (size_t i = 0; i < file["cases"].size(); i++) {
    const json &c = file["cases"][i];
    SCOPED_TRACE("case " + std::to_string(i));
    std::vector<float> logits = floats_from_hex(c["logits_hex"]), before = logits;
    Sampler sampler = make_sampler(int32_t(logits.size()), options_of(c).get());
    std::vector<int32_t> ids;
    for (size_t draw = 0; draw < c["ids"].size(); draw++) {
      int32_t id = -1;
      Answer answer = answer_of(proofinfer_sampler_sample, sampler.get(), logits.data(), logits.size(), &id);
      ASSERT_TRUE(answer.ok()) << answer;
      ids.push_back(id);
    }
    EXPECT_EQ(ids, c["ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(std::memcmp(logits.data(), before.data(), logits.size() * 4), 0) << "the caller's logits were changed";
  }
}

}  // namespace proofinfer_test
