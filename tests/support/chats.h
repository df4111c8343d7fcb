// Message lists through the C API, and ids as the text that they stand for. Any thread.
#ifndef PROOFINFER_TESTS_SUPPORT_CHATS_H
#define PROOFINFER_TESTS_SUPPORT_CHATS_H

#include "support/handles.h"
#include "support/vocabulary_files.h"

namespace proofinfer_test {

constexpr int32_t kSystem = PROOFINFER_ROLE_SYSTEM, kUser = PROOFINFER_ROLE_USER, kAssistant = PROOFINFER_ROLE_ASSISTANT;

struct Message {
  int32_t role;
  std::string content;
};

inline Tokenizer open_vocabulary(const VocabularyFile &file) { return open_tokenizer(file.bytes(), 0); }

// ids: what was encoded.
inline Answer encode_chat(const Tokenizer &tokenizer, const std::vector<Message> &messages, uint32_t flags, std::vector<int32_t> *ids,
                          std::string_view name = {}) {
  std::vector<int32_t> roles;
  std::vector<size_t> sizes;
  std::string contents;
  for (const Message &message : messages) {
    roles.push_back(message.role), sizes.push_back(message.content.size());
    contents += message.content;
  }
  ids->assign(2 * contents.size() + 200 * (messages.size() + 1), -1);
  size_t needed = 0;
  Answer answer = answer_of(proofinfer_chat_encode, tokenizer.get(), name.data(), name.size(), roles.data(), contents.data(), sizes.data(),
                            messages.size(), flags, ids->data(), ids->size(), &needed);
  ids->resize(answer.ok() ? needed : 0);
  return answer;
}

inline int32_t kind_of(const Tokenizer &tokenizer, int32_t id) {
  int32_t kind = 0;
  EXPECT_TRUE(answer_of(proofinfer_tokenizer_piece_kind, tokenizer.get(), id, &kind).ok());
  return kind;
}

// Control and user-defined pieces as they are spelled, the others as the bytes that they are in a text.
inline std::string spell(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  std::string text;
  for (int32_t id : ids) {
    const uint32_t flags =
        kind_of(tokenizer, id) == kControlPiece || kind_of(tokenizer, id) == kUserDefinedPiece ? PROOFINFER_DECODE_SPELLED : 0;
    char piece[256];
    size_t count = 0;
    Answer answer = answer_of(proofinfer_tokenizer_decode, tokenizer.get(), -1, id, flags, piece, sizeof(piece), &count);
    EXPECT_TRUE(answer.ok()) << answer;
    text.append(piece, count);
  }
  return text;
}

// The ids that are control pieces, spelled.
inline std::vector<std::string> controls(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  std::vector<std::string> found;
  for (int32_t id : ids)
    if (kind_of(tokenizer, id) == kControlPiece || kind_of(tokenizer, id) == kUserDefinedPiece) found.push_back(spell(tokenizer, {id}));
  return found;
}

}  // namespace proofinfer_test

#endif
