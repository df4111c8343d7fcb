// Message lists in the chat templates that are known, as token ids. Templates of files are recognised by what is written in them and never executed.
// Any thread.
//
// What a message says stays text whatever it spells: a template's marks are put between texts as ids, and texts are encoded with control pieces
// unrecognised. Where the vocabulary has no piece for a mark, the mark is text itself, and a message can spell it (docs/chat.md).
#ifndef PROOFINFER_MODEL_CHAT_H
#define PROOFINFER_MODEL_CHAT_H

#include "model/tokenizer.h"

namespace proofinfer {

// The values of the public PROOFINFER_ROLE_ constants; src/api asserts that they agree.
enum class Role : int32_t { kSystem = 1, kUser = 2, kAssistant = 3 };

struct Messages {
  const int32_t *roles;         // [count] whatever the caller gave
  const char *contents;         // one after another
  const size_t *content_bytes;  // [count] each one's
  size_t count;
};

struct ChatStyle;

class ChatTemplate {
 public:
  // The names that `find` knows: index below known_count().
  static size_t known_count();
  static const char *known_name(size_t index);

  // The file's template with an empty name; otherwise the one of this name, as the file has it if the file's is of this name. Errors: kArgument (a
  // name that is not known), kUnsupported (the file has none, or one that is not recognised), kMemory, kLimit. tokenizer: outlives this object.
  Status find(const Tokenizer *tokenizer, Bytes name, Failure *failure);

  const char *name() const;
  // ids: [*count] on success. answer: what the assistant's next message begins with stands at the end. Errors: kArgument (a list that the template has
  // no form for), kFormat (the vocabulary lacks a piece), kMemory, kLimit.
  Status encode(const Messages &messages, bool answer, Buffer<int32_t> *ids, size_t *count, Failure *failure) const;

  // The ids that end the assistant's message: [count], at most kMaxStopTokens.
  static constexpr size_t kMaxStopTokens = 2;
  size_t stop_tokens(int32_t *to) const;

 private:
  friend class ChatWriter;
  static constexpr size_t kMaxMarks = 8;

  // A piece that the template names.
  struct Mark {
    Bytes spelling;
    int32_t id;         // -1: the vocabulary has no control or user-defined piece of it
    bool user_defined;  // it is found in ordinary text, too
  };

  // What stands in the file's template. nullptr style: nothing that is known.
  Status recognize(Failure *failure);
  void collect_marks();
  void add_marks(const char *text);
  int32_t mark_id(Bytes spelling) const;
  Status check(const Messages &messages, Failure *failure) const;

  const Tokenizer *tokenizer_ = nullptr;
  const ChatStyle *style_ = nullptr;
  bool begins_with_bos_ = false;     // the template itself says so
  bool has_default_system_ = false;  // what stands for a system message where there is none
  Buffer<char> default_system_;      // empty: nothing
  Mark marks_[kMaxMarks];
  size_t mark_count_ = 0;
};

}  // namespace proofinfer

#endif
