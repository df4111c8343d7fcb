// A real model in GGUF: its greedy answers are the recorded ones on every kernel set, number of threads and split of the prompt. The tests of the
// bindings and of the program ask for the same record.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "support/chats.h"
#include "support/files.h"

namespace proofinfer_test {

using nlohmann::json;

namespace {

std::vector<Message> first_turn(const json &talk) { return {{kUser, talk.at("turns").at(0).at("user")}}; }

// Greedy tokens behind a prompt that is appended in parts of `part`, up to and with the stop token.
std::vector<int32_t> greedy(const Model &model, const std::vector<int32_t> &prompt, size_t part, int32_t stop) {
  Options options = make_options();
  set(options, "context_length", 256);
  Session session = make_session(model, options.get());
  for (size_t done = 0; done < prompt.size(); done += part) {
    const std::vector<int32_t> tokens(prompt.begin() + std::ptrdiff_t(done),
                                      prompt.begin() + std::ptrdiff_t(std::min(done + part, prompt.size())));
    const Answer answer = append(session, tokens, PROOFINFER_LOGITS_LAST);
    EXPECT_TRUE(answer.ok()) << answer;
  }
  std::vector<int32_t> ids;
  while (ids.size() < 64) {
    const std::vector<float> row = logits(session, prompt.size() + ids.size() - 1);
    ids.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    if (ids.back() == stop) break;
    const Answer answer = append(session, {ids.back()}, PROOFINFER_LOGITS_LAST);
    EXPECT_TRUE(answer.ok()) << answer;
  }
  return ids;
}

}  // namespace

TEST(GoldenSmollm2, the_greedy_answer_is_the_recorded_one_on_every_kernel_set_with_any_threads_and_splits) {
  PROOFINFER_SMOLLM2_OR_SKIP(path);
  const json talk = golden("smollm2.json");
  const json turn = talk.at("turns").at(0);
  const std::vector<int32_t> prompt = turn.at("prompt"), expected = turn.at("answer");
  Tokenizer tokenizer = open_tokenizer(path, 0);
  std::vector<int32_t> encoded;
  ASSERT_TRUE(encode_chat(tokenizer, first_turn(talk), PROOFINFER_CHAT_ANSWER, &encoded).ok());
  EXPECT_EQ(encoded, prompt);
  for (const std::string &isa : available_isas()) {
    const bool is_slow = isa == "scalar" || isa == "sse2";
    for (int64_t threads : {1, 2, 3}) {
      if (is_slow && threads != 2) continue;
      Options options = make_options();
      set_text(options, "isa", isa);
      set(options, "threads", threads);
      const Model model = open_model(path, options.get());
      for (size_t part : {prompt.size(), size_t(1), size_t(7)}) {
        if (is_slow && part != prompt.size()) continue;
        EXPECT_EQ(greedy(model, prompt, part, expected.back()), expected) << isa << ", " << threads << " threads, parts of " << part;
      }
    }
  }
}

}  // namespace proofinfer_test
