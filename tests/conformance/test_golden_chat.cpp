// Message lists in chat templates against what Jinja makes of the templates that models are published with (reference/chat_templates.py).
#include <gtest/gtest.h>

#include "support/chats.h"
#include "support/files.h"

namespace proofinfer_test {

using nlohmann::json;

namespace {

const std::vector<std::string> kMarks = {"<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>",
                                         "<|eot_id|>",   "<|user|>",   "<|system|>",          "<|assistant|>",
                                         "[INST]",       "[/INST]"};

VocabularyFile file_of(const json &published) {
  VocabularyFile file;
  file.bos = published.at("bos");
  file.eos = published.at("eos");
  file.chat_template = published.at("text");
  return file;
}

int32_t role_of(const std::string &name) { return name == "system" ? kSystem : name == "user" ? kUser : kAssistant; }

std::vector<Message> messages_of(const json &list) {
  std::vector<Message> messages;
  for (const json &message : list) messages.push_back({role_of(message.at("role")), message.at("content")});
  return messages;
}

}  // namespace

TEST(GoldenChat, every_list_becomes_the_text_that_jinja_makes) {
  const json recorded = golden("chat.json");
  size_t rendered = 0, refused = 0;
  // With the marks as control pieces, as user-defined ones, and as ordinary text.
  for (int32_t kind : {int32_t(kControlPiece), int32_t(kUserDefinedPiece), 0}) {
    std::map<std::string, Tokenizer> tokenizers;
    for (const auto &[title, published] : recorded.at("templates").items()) {
      VocabularyFile file = file_of(published);
      if (kind) file.specials = kMarks, file.special_kind = kind;
      tokenizers[title] = open_vocabulary(file);
      ASSERT_NE(proofinfer_chat_template(tokenizers[title].get()), nullptr) << title;
      EXPECT_EQ(proofinfer_chat_template(tokenizers[title].get()), published.at("name").get<std::string>());
    }
    for (const json &c : recorded.at("cases")) {
      const Tokenizer &tokenizer = tokenizers.at(c.at("template"));
      const uint32_t flags = c.at("answer").get<bool>() ? PROOFINFER_CHAT_ANSWER : 0;
      std::vector<int32_t> ids;
      Answer answer = encode_chat(tokenizer, messages_of(c.at("messages")), flags, &ids);
      if (c.at("text").is_null()) {
        EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << c;
        refused++;
        continue;
      }
      ASSERT_TRUE(answer.ok()) << answer << c;
      ASSERT_EQ(spell(tokenizer, ids), c.at("text").get<std::string>()) << c;
      rendered++;
    }
  }
  EXPECT_GT(rendered, 700u);
  EXPECT_GT(refused, 100u);
}

TEST(GoldenChat, marks_are_pieces_wherever_the_template_has_them_and_nowhere_else) {
  const json recorded = golden("chat.json");
  for (int32_t kind : {int32_t(kControlPiece), int32_t(kUserDefinedPiece)}) {
    for (const json &c : recorded.at("cases")) {
      if (c.at("text").is_null()) continue;
      VocabularyFile file = file_of(recorded.at("templates").at(c.at("template").get<std::string>()));
      file.special_kind = kind;
      // User-defined pieces are found in ordinary text but for those of the template.
      for (const std::string &mark : kMarks)
        if (kind == kControlPiece || file.chat_template.find(mark) != std::string::npos) file.specials.push_back(mark);
      const Tokenizer tokenizer = open_vocabulary(file);
      const uint32_t flags = c.at("answer").get<bool>() ? PROOFINFER_CHAT_ANSWER : 0;
      std::vector<Message> messages = messages_of(c.at("messages")), harmless = messages;
      for (Message &message : harmless) message.content = "x";
      std::vector<int32_t> ids, plain;
      ASSERT_TRUE(encode_chat(tokenizer, messages, flags, &ids).ok());
      ASSERT_TRUE(encode_chat(tokenizer, harmless, flags, &plain).ok());
      ASSERT_EQ(controls(tokenizer, ids), controls(tokenizer, plain)) << c;
      ASSERT_FALSE(controls(tokenizer, ids).empty()) << c;
    }
  }
}

}  // namespace proofinfer_test
