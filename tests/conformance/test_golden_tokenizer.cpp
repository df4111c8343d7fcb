// Encoding against the recorded ids of the reference, for two vocabularies; and the way back.
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

using nlohmann::json;

namespace {

std::string text_of(const json &c) {
  if (c.contains("text")) return c["text"];
  std::vector<uint8_t> bytes = bytes_from_hex(c["bytes_hex"]);
  return std::string(bytes.begin(), bytes.end());
}

// The bytes that the ids stand for, each in the context of the one before.
std::string decode(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); i++) {
    char piece[64];
    size_t count = 0;
    Answer answer =
        answer_of(proofinfer_tokenizer_decode, tokenizer.get(), i == 0 ? -1 : ids[i - 1], ids[i], 0u, piece, sizeof(piece), &count);
    EXPECT_TRUE(answer.ok()) << answer;
    text.append(piece, count);
  }
  return text;
}

void check_set(const json &set, const std::string &path) {
  Tokenizer tokenizer = open_tokenizer(path, set["vocab_size"]);
  ASSERT_TRUE(tokenizer);
  uint32_t flags = (set["bos"] ? PROOFINFER_ENCODE_BOS : 0u) | (set["eos"] ? PROOFINFER_ENCODE_EOS : 0u);
  ASSERT_EQ(set["cases"].size(), 40u);
  for (const json &c : set["cases"]) {
    std::string text = text_of(c);
    SCOPED_TRACE(text);
    EXPECT_EQ(encode(tokenizer, text, flags), c["ids"].get<std::vector<int32_t>>());
    std::vector<int32_t> without_bos = encode(tokenizer, text, 0);
    if (!text.empty()) {
      EXPECT_EQ(decode(tokenizer, without_bos), " " + text) << "the dummy space";
      without_bos.insert(without_bos.begin(), 1);
      EXPECT_EQ(decode(tokenizer, without_bos).substr(5), text) << "after BOS the dummy space goes";
    }
  }
}

void check(const std::string &name) {
  PROOFINFER_MODEL_OR_SKIP(path, name);
  json file = golden("tokenizer.json");
  bool found = false;
  for (const json &set : file["sets"]) {
    if (set["tokenizer"] != name) continue;
    found = true;
    check_set(set, path);
  }
  EXPECT_TRUE(found);
}

}  // namespace

TEST(GoldenTokenizer, every_text_gives_the_recorded_ids_with_32000_pieces) { check("tokenizer.bin"); }

TEST(GoldenTokenizer, every_text_gives_the_recorded_ids_with_512_pieces) { check("tok512.bin"); }

}  // namespace proofinfer_test
