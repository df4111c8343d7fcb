#include "model/chat_style.h"

namespace proofinfer {

namespace {

#define PI_CHATML(role) PI_MARK("<|im_start|>") role "\n"
#define PI_HEADER(role) PI_MARK("<|start_header_id|>") role PI_MARK("<|end_header_id|>") "\n\n"
#define PI_DATES "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
#define PI_INST PI_MARK("[INST]")
#define PI_END_INST PI_MARK("[/INST]")

enum StyleIndex : size_t {
  kLlama2,
  kLlama2TrimmedSystem,
  kLlama3,
  kLlama3Dated,
  kChatml,
  kZephyr,
  kMistral,         // 7B Instruct 0.2
  kMistralSpaced,   // 0.1
  kMistralV1,       // the published form of tokenizer version 1
  kMistralV1First,  // the same with a system message
  kMistralV2,       // version 2
  kMistralV3,       // version 3: the marks are pieces
  kMistralV3First,  // the same with the system message in the first message
  kMistralTekken,
  kMistralTekkenFirst,
  kStyleCount
};

constexpr ChatStyle mistral(SystemPlace place, bool trims, const char *before_user, const char *after_user, const char *before_assistant,
                            const char *after_assistant) {
  return {"mistral",       true, true,   place, false, false, trims, "", "\n\n", before_user, after_user, before_assistant,
          after_assistant, "",   nullptr};
}

constexpr ChatStyle kStyles[kStyleCount] = {
    {"llama2", false, true, SystemPlace::kFirstUser, false, true, true, "<<SYS>>\n", "\n<</SYS>>\n\n", PI_BOS PI_INST " ", " " PI_END_INST,
     " ", " " PI_EOS, "", nullptr},
    {"llama2", false, true, SystemPlace::kFirstUser, true, true, true, "<<SYS>>\n", "\n<</SYS>>\n\n", PI_BOS PI_INST " ", " " PI_END_INST,
     " ", " " PI_EOS, "", nullptr},
    {"llama3", true, false, SystemPlace::kMessage, true, true, true, PI_HEADER("system"), PI_MARK("<|eot_id|>"), PI_HEADER("user"),
     PI_MARK("<|eot_id|>"), PI_HEADER("assistant"), PI_MARK("<|eot_id|>"), PI_HEADER("assistant"), "<|eot_id|>"},
    {"llama3", true, false, SystemPlace::kMessage, true, true, true, PI_HEADER("system") PI_DATES, PI_MARK("<|eot_id|>"), PI_HEADER("user"),
     PI_MARK("<|eot_id|>"), PI_HEADER("assistant"), PI_MARK("<|eot_id|>"), PI_HEADER("assistant"), "<|eot_id|>"},
    {"chatml", false, false, SystemPlace::kMessage, false, false, false, PI_CHATML("system"), PI_MARK("<|im_end|>") "\n", PI_CHATML("user"),
     PI_MARK("<|im_end|>") "\n", PI_CHATML("assistant"), PI_MARK("<|im_end|>") "\n", PI_CHATML("assistant"), "<|im_end|>"},
    {"zephyr", false, false, SystemPlace::kMessage, false, false, false, PI_MARK("<|system|>") "\n", PI_EOS "\n", PI_MARK("<|user|>") "\n",
     PI_EOS "\n", PI_MARK("<|assistant|>") "\n", PI_EOS "\n", PI_MARK("<|assistant|>") "\n", nullptr},
    mistral(SystemPlace::kNone, false, PI_INST " ", " " PI_END_INST, "", PI_EOS),
    mistral(SystemPlace::kNone, false, PI_INST " ", " " PI_END_INST, "", PI_EOS " "),
    mistral(SystemPlace::kNone, false, " " PI_INST " ", " " PI_END_INST, " ", PI_EOS),
    mistral(SystemPlace::kFirstUser, false, " " PI_INST " ", " " PI_END_INST, " ", PI_EOS),
    mistral(SystemPlace::kNone, false, PI_INST " ", PI_END_INST, " ", PI_EOS),
    mistral(SystemPlace::kLast, true, PI_INST " ", PI_END_INST, " ", PI_EOS),
    mistral(SystemPlace::kFirstUser, true, PI_INST " ", PI_END_INST, " ", PI_EOS),
    mistral(SystemPlace::kLast, false, PI_INST, PI_END_INST, "", PI_EOS),
    mistral(SystemPlace::kFirstUser, false, PI_INST, PI_END_INST, "", PI_EOS),
};

constexpr char kSystemMark[] = "<|im_start|>system\n", kEndMark[] = "<|im_end|>";

// A template in a form in which spelling does not matter: inside {{ }} and {% %} there is no white space but in strings, strings stand between single
// quotes with their "\n" replaced, and x.content is x['content'].
class PlainTemplate {
 public:
  Status create(Bytes text, Account *account, Failure *failure);
  bool has(const char *part) const { return find(part, 0) != kNowhere; }
  // Where `part` stands first, from `from` on.
  size_t find(const char *part, size_t from) const;
  const char *data() const { return text_.data(); }
  size_t count() const { return count_; }
  static constexpr size_t kNowhere = SIZE_MAX;

 private:
  size_t copy_string(Bytes text, size_t at);
  size_t copy_code(Bytes text, size_t at);
  void put(const char *text) {
    while (*text) text_[count_++] = *text++;
  }

  Buffer<char> text_;
  size_t count_ = 0;
};

bool starts_with(Bytes text, size_t at, const char *part) {
  size_t n = strlen(part);
  return text.count - at >= n && memcmp(text.data + at, part, n) == 0;
}

// From the quote at `at`; where the string ends.
size_t PlainTemplate::copy_string(Bytes text, size_t at) {
  unsigned char quote = text.data[at++];
  text_[count_++] = '\'';
  for (; at < text.count && text.data[at] != quote; at++) {
    if (text.data[at] == '\\' && at + 1 < text.count) {
      at++;
      if (text.data[at] != 'n') text_[count_++] = '\\';
      text_[count_++] = text.data[at] == 'n' ? '\n' : static_cast<char>(text.data[at]);
    } else {
      text_[count_++] = static_cast<char>(text.data[at]);
    }
  }
  text_[count_++] = '\'';
  return at + 1;
}

// Behind "{{" or "{%"; where the code ends.
size_t PlainTemplate::copy_code(Bytes text, size_t at) {
  while (at < text.count && !starts_with(text, at, "}}") && !starts_with(text, at, "%}")) {
    unsigned char c = text.data[at];
    if (c == '\'' || c == '"') {
      at = copy_string(text, at);
    } else if (starts_with(text, at, ".content")) {
      put("['content']");
      at += strlen(".content");
    } else if (starts_with(text, at, ".role")) {
      put("['role']");
      at += strlen(".role");
    } else {
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t') text_[count_++] = static_cast<char>(c);
      at++;
    }
  }
  return at;
}

Status PlainTemplate::create(Bytes text, Account *account, Failure *failure) {
  if (text.count > SIZE_MAX / 2 - 8) return fail(failure, kMemory, "the chat template has more bytes than this machine can address");
  // ".role" becomes three bytes longer, nothing else more than half as long again.
  if (Status status = text_.allocate(account, 2 * text.count + 8, "the chat template", failure)) return status;
  for (size_t at = 0; at < text.count;) {
    bool code = starts_with(text, at, "{{") || starts_with(text, at, "{%");
    text_[count_++] = static_cast<char>(text.data[at++]);
    if (!code) continue;
    text_[count_++] = static_cast<char>(text.data[at++]);
    at = copy_code(text, at);
  }
  return kOk;
}

size_t PlainTemplate::find(const char *part, size_t from) const {
  size_t n = strlen(part);
  for (size_t at = from; at < count_ && count_ - at >= n; at++) {
    const void *first = memchr(text_.data() + at, part[0], count_ - at - n + 1);
    if (!first) return kNowhere;
    at = static_cast<size_t>(static_cast<const char *>(first) - text_.data());
    if (memcmp(text_.data() + at, part, n) == 0) return at;
  }
  return kNowhere;
}

bool is_llama2(const PlainTemplate &t) {
  return t.has("bos_token+'[INST] '+content.strip()+' [/INST]'") && t.has("' '+content.strip()+' '+eos_token") && !t.has("true==true") &&
         t.has("!=(loop.index0%2==0)");
}

size_t find_llama2(const PlainTemplate &t) {
  if (!is_llama2(t)) return kStyleCount;
  if (t.has("'<<SYS>>\n'+system_message+'\n<</SYS>>\n\n'+message['content']")) return kLlama2;
  if (t.has("'<<SYS>>\n'+messages[0]['content'].strip()+'\n<</SYS>>\n\n'")) return kLlama2TrimmedSystem;
  return kStyleCount;
}

size_t find_llama3(const PlainTemplate &t) {
  if (!t.has("'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['content']|trim+'<|eot_id|>'")) return kStyleCount;
  if (!t.has("Cutting Knowledge Date:")) return kLlama3;
  return t.has("'Cutting Knowledge Date: December 2023\n'") && t.has("'Today Date: '+date_string+'\n\n'") && t.has("'26 Jul 2024'")
             ? kLlama3Dated
             : kStyleCount;
}

size_t find_chatml(const PlainTemplate &t) {
  bool known = t.has("'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>'+'\n'") ||
               t.has("'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>\n'");
  constexpr const char *kOthers[] = {"<|im_sep|>", "<end_of_utterance>", "</think>", "|trim", ".strip("};
  for (const char *other : kOthers) known = known && !t.has(other);
  return known ? kChatml : kStyleCount;
}

size_t find_zephyr(const PlainTemplate &t) {
  bool known = true;
  // The line's end behind the braces is part of what comes out.
  constexpr const char *kParts[] = {"{{'<|user|>\n'+message['content']+eos_token}}\n", "{{'<|system|>\n'+message['content']+eos_token}}\n",
                                    "{{'<|assistant|>\n'+message['content']+eos_token}}\n", "{{'<|assistant|>'}}\n"};
  for (const char *part : kParts) known = known && t.has(part);
  return known ? kZephyr : kStyleCount;
}

size_t find_mistral(const PlainTemplate &t) {
  if (!t.has("bos_token") || !(t.has("!=(loop.index0%2==0)") || t.has("!=(ns.index%2==0)"))) return kStyleCount;
  bool first = t.has("loop.firstandsystem_messageisdefined"), last = t.has("loop.lastandsystem_messageisdefined"), none = !t.has("system");
  bool trims = t.has("message['content']|trim+eos_token");
  if (first + last + none != 1) return kStyleCount;
  if (t.has("'[INST] '+message['content']+' [/INST]'") && none && !trims) {
    if (t.has("{{message['content']+eos_token+' '}}")) return kMistralSpaced;
    return t.has("{{message['content']+eos_token}}") ? kMistral : kStyleCount;
  }
  if (t.has("' [INST] '+message['content']+' [/INST]'") && t.has("' '+message['content']+eos_token")) {
    if (none) return kMistralV1;
    return first && t.has("' [INST] '+system_message+'\n\n'+message['content']+' [/INST]'") ? kMistralV1First : kStyleCount;
  }
  if (t.has("'[INST] '+message['content']+'[/INST]'")) {
    if (none) return t.has("' '+message['content']+eos_token") ? kMistralV2 : kStyleCount;
    bool known = t.has("'[INST] '+system_message+'\n\n'+message['content']+'[/INST]'") && t.has("' '+message['content']|trim+eos_token");
    return !known ? kStyleCount : last ? kMistralV3 : kMistralV3First;
  }
  bool tekken = t.has("'[INST]'+message['content']+'[/INST]'") && t.has("'[INST]'+system_message+'\n\n'+message['content']+'[/INST]'") &&
                t.has("message['content']+eos_token") && !t.has("' '+message['content']");
  return !tekken || none ? kStyleCount : last ? kMistralTekken : kMistralTekkenFirst;
}

// The text that stands in a ChatML template for a missing system message. False: there is one that is not plain text.
bool find_default_system(const PlainTemplate &t, RecognizedChat *found, Account *account, Status *status, Failure *failure) {
  size_t at = 0;
  while ((at = t.find(kSystemMark, at)) != PlainTemplate::kNowhere) {
    at += strlen(kSystemMark);
    if (at < t.count() && t.data()[at] == '\'') continue;
    size_t end = t.find(kEndMark, at);
    if (end == PlainTemplate::kNowhere) return false;
    for (size_t i = at; i < end; i++)
      if (t.data()[i] == '\'' || t.data()[i] == '{' || t.data()[i] == '\\') return false;
    found->has_default_system = true;
    *status = found->default_system.allocate(account, end - at, "the chat template's system message", failure);
    if (*status == kOk && end > at) memcpy(found->default_system.data(), t.data() + at, end - at);
    return true;
  }
  return true;
}

}  // namespace

size_t chat_style_count() { return kStyleCount; }
const ChatStyle &chat_style(size_t index) { return kStyles[index]; }

Status recognize_chat(Bytes text, Account *account, RecognizedChat *found, Failure *failure) {
  PlainTemplate t;
  if (text.count == 0) return kOk;
  if (Status status = t.create(text, account, failure)) return status;
  size_t style = find_llama2(t);
  constexpr size_t (*kFinders[])(const PlainTemplate &) = {find_llama3, find_chatml, find_zephyr, find_mistral};
  for (auto find : kFinders)
    if (style == kStyleCount) style = find(t);
  if (style == kStyleCount) return kOk;
  Status status = kOk;
  if (style == kChatml && !find_default_system(t, found, account, &status, failure)) return kOk;
  if (status != kOk) return status;
  if (style == kLlama3Dated) found->has_default_system = true;
  found->begins_with_bos = kStyles[style].begins_with_bos && (t.has("bos_token") || t.has("'<|begin_of_text|>'"));
  if (style == kChatml) found->begins_with_bos = t.has("{{bos_token}}") || t.has("{{-bos_token}}");
  found->style = &kStyles[style];
  return kOk;
}

}  // namespace proofinfer
