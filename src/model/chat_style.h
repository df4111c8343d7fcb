// The forms of the known chat templates, as data, and the recognition of a file's template among them. Any thread.
#ifndef PROOFINFER_MODEL_CHAT_STYLE_H
#define PROOFINFER_MODEL_CHAT_STYLE_H

#include "base/memory.h"
#include "format/vocabulary.h"

namespace proofinfer {

// In the texts of a style: PI_BOS and PI_EOS are these ids, PI_MARK("<|im_end|>") is the piece of this spelling where the vocabulary has it as a control
// or user-defined piece, and text where it has not.
#define PI_BOS "\001"
#define PI_EOS "\002"
#define PI_MARK(spelling) "\003" spelling "\003"

enum class SystemPlace : uint8_t {
  kNone,       // there is no form for it
  kMessage,    // a message as the others
  kFirstUser,  // inside the user's first message
  kLast,       // inside the last message, if that is the user's
};

struct ChatStyle {
  const char *name;
  bool begins_with_bos;  // unless the file's template says otherwise
  bool alternates;       // user and assistant by turns, the user first
  SystemPlace system_place;
  bool trims_system, trims_user, trims_assistant;  // white space around what they say
  const char *before_system, *after_system;
  const char *before_user, *after_user;
  const char *before_assistant, *after_assistant;
  const char *answer;    // what the assistant's message begins with, where one is asked for
  const char *turn_end;  // the mark that ends the assistant's message; nullptr: EOS
};

// The styles; those of one name stand together, the one that is meant by the name alone first.
size_t chat_style_count();
const ChatStyle &chat_style(size_t index);

// What a file's template is.
struct RecognizedChat {
  const ChatStyle *style = nullptr;  // nullptr: none of the known ones
  bool begins_with_bos = false;
  bool has_default_system = false;
  Buffer<char> default_system;  // empty: nothing
};

// Errors: kMemory, kLimit.
Status recognize_chat(Bytes text, Account *account, RecognizedChat *found, Failure *failure);

}  // namespace proofinfer

#endif
