#include "model/chat.h"

#include "model/chat_style.h"

namespace proofinfer {

namespace {

constexpr char kBosSign = PI_BOS[0], kEosSign = PI_EOS[0], kMarkSign = PI_MARK("")[0];

Bytes bytes_of(const char *text) { return {reinterpret_cast<const unsigned char *>(text), strlen(text)}; }
bool equal(Bytes a, Bytes b) { return a.count == b.count && (a.count == 0 || memcmp(a.data, b.data, a.count) == 0); }

// Bytes of the white space character that a text begins with, by Unicode, as templates trim it; 0: none.
size_t white_space(const unsigned char *text, size_t count) {
  unsigned char c = text[0];
  if ((c >= 9 && c <= 13) || (c >= 28 && c <= 32)) return 1;
  if (count >= 2 && c == 0xC2 && (text[1] == 0x85 || text[1] == 0xA0)) return 2;
  if (count < 3 || (c != 0xE1 && c != 0xE2 && c != 0xE3)) return 0;
  uint32_t point = static_cast<uint32_t>(c & 15) << 12 | static_cast<uint32_t>(text[1] & 63) << 6 | (text[2] & 63);
  bool continued = (text[1] & 0xC0) == 0x80 && (text[2] & 0xC0) == 0x80;
  bool space = point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 || point == 0x2029 || point == 0x202F ||
               point == 0x205F || point == 0x3000;
  return continued && space ? 3 : 0;
}

Bytes trim_begin(Bytes text) {
  for (size_t n; text.count > 0 && (n = white_space(text.data, text.count)) > 0;) text = {text.data + n, text.count - n};
  return text;
}

Bytes trim_end(Bytes text) {
  for (;;) {
    size_t n = 1;
    while (n <= 3 && n <= text.count && white_space(text.data + text.count - n, n) != n) n++;
    if (n > 3 || n > text.count) return text;
    text.count -= n;
  }
}

Bytes trim(Bytes text, bool wanted) { return wanted ? trim_end(trim_begin(text)) : text; }

}  // namespace

// What a list of messages looks like: ids, and texts between them. The first of two runs counts.
class ChatWriter {
 public:
  struct Part {
    int32_t id;         // -1: a text
    size_t begin, end;  // of its bytes
  };

  ChatWriter(const ChatTemplate &chat, const ChatStyle &style, Bytes default_system)
      : chat_(chat), style_(style), default_system_(default_system) {}

  Status run(const Messages &messages, bool answer, Account *account, Failure *failure) {
    write(messages, answer);
    Status status = text_.allocate(account, byte_count_ + 1, "the chat's text", failure);
    if (status == kOk) status = parts_.allocate(account, part_count_ + 1, "the chat's parts", failure);
    if (status != kOk) return status;
    byte_count_ = part_count_ = 0;
    writing_ = true;
    write(messages, answer);
    return kOk;
  }
  size_t part_count() const { return part_count_; }
  const Part &part(size_t i) const { return parts_[i]; }
  Bytes text(const Part &part) const { return {reinterpret_cast<const unsigned char *>(text_.data()) + part.begin, part.end - part.begin}; }

 private:
  void write(const Messages &messages, bool answer);
  void write_user(Bytes content, const Bytes *system);
  void add_id(int32_t id) {
    if (id < 0) return;
    if (writing_) parts_[part_count_] = {id, 0, 0};
    part_count_++;
    in_text_ = false;
  }
  // Text joins text before it.
  void add_text(Bytes bytes) {
    if (bytes.count == 0) return;
    if (!in_text_) {
      if (writing_) parts_[part_count_] = {-1, byte_count_, byte_count_};
      part_count_++;
    }
    in_text_ = true;
    if (writing_) {
      memcpy(text_.data() + byte_count_, bytes.data, bytes.count);
      parts_[part_count_ - 1].end += bytes.count;
    }
    byte_count_ += bytes.count;
  }
  // A text of the style, with its signs.
  void add_style(const char *text);

  const ChatTemplate &chat_;
  const ChatStyle &style_;
  Bytes default_system_;
  bool writing_ = false, in_text_ = false;
  size_t byte_count_ = 0, part_count_ = 0;
  Buffer<char> text_;
  Buffer<Part> parts_;
};

void ChatWriter::add_style(const char *text) {
  while (*text) {
    if (*text == kBosSign || *text == kEosSign) {
      add_id(*text == kBosSign ? chat_.tokenizer_->bos() : chat_.tokenizer_->eos());
      text++;
      continue;
    }
    bool is_mark = *text == kMarkSign;
    if (is_mark) text++;
    size_t n = 0;
    while (text[n] && text[n] != kBosSign && text[n] != kEosSign && text[n] != kMarkSign) n++;
    Bytes bytes = {reinterpret_cast<const unsigned char *>(text), n};
    int32_t id = is_mark ? chat_.mark_id(bytes) : -1;
    if (id >= 0)
      add_id(id);
    else
      add_text(bytes);
    text += n + is_mark;
  }
}

// White space is trimmed around the whole of system message and content, as far as the style trims what the user says.
void ChatWriter::write_user(Bytes content, const Bytes *system) {
  add_style(style_.before_user);
  if (!system) {
    add_text(trim(content, style_.trims_user));
  } else {
    add_style(style_.before_system);
    add_text(trim(*system, style_.trims_system));
    content = style_.trims_user ? trim_end(content) : content;
    Bytes between = bytes_of(style_.after_system);
    add_text(style_.trims_user && content.count == 0 ? trim_end(between) : between);
    add_text(content);
  }
  add_style(style_.after_user);
}

void ChatWriter::write(const Messages &messages, bool answer) {
  in_text_ = false;
  bool begins = chat_.begins_with_bos_ || chat_.tokenizer_->vocabulary().add_bos;
  const int32_t bos = chat_.tokenizer_->bos();
  // A style whose turns begin with it has one in any case.
  if (begins && style_.before_user[0] != kBosSign) add_id(bos);
  const Bytes *inside = nullptr;  // a system message that waits for its user message
  Bytes system = {nullptr, 0};
  if (chat_.has_default_system_ && messages.roles[0] != static_cast<int32_t>(Role::kSystem)) {
    add_style(style_.before_system);
    add_text(default_system_);
    add_style(style_.after_system);
  }
  const unsigned char *at = reinterpret_cast<const unsigned char *>(messages.contents);
  for (size_t i = 0; i < messages.count; i++) {
    Bytes content = {at, messages.content_bytes[i]};
    if (content.count > 0) at += content.count;
    Role role = static_cast<Role>(messages.roles[i]);
    if (role == Role::kSystem && style_.system_place != SystemPlace::kMessage) {
      system = content;
      inside = &system;
    } else if (role == Role::kSystem) {
      add_style(style_.before_system);
      add_text(trim(content, style_.trims_system));
      add_style(style_.after_system);
    } else if (role == Role::kUser) {
      bool here = style_.system_place != SystemPlace::kLast || i + 1 == messages.count;
      write_user(content, here ? inside : nullptr);
      if (here) inside = nullptr;
    } else {
      add_style(style_.before_assistant);
      add_text(trim(content, style_.trims_assistant));
      add_style(style_.after_assistant);
    }
  }
  if (answer) add_style(style_.answer);
}

// ---- ChatTemplate ----

size_t ChatTemplate::known_count() {
  size_t count = 0;
  while (known_name(count)) count++;
  return count;
}

const char *ChatTemplate::known_name(size_t index) {
  for (size_t i = 0; i < chat_style_count(); i++) {
    bool first = i == 0 || strcmp(chat_style(i).name, chat_style(i - 1).name) != 0;
    if (first && index-- == 0) return chat_style(i).name;
  }
  return nullptr;
}

const char *ChatTemplate::name() const { return style_->name; }

Status ChatTemplate::recognize(Failure *failure) {
  RecognizedChat found;
  if (Status status = recognize_chat(tokenizer_->chat_template(), tokenizer_->account(), &found, failure)) return status;
  style_ = found.style;
  if (!style_) return kOk;
  begins_with_bos_ = found.begins_with_bos;
  has_default_system_ = found.has_default_system;
  default_system_.swap(found.default_system);
  return kOk;
}

Status ChatTemplate::find(const Tokenizer *tokenizer, Bytes name, Failure *failure) {
  tokenizer_ = tokenizer;
  if (Status status = recognize(failure)) return status;
  constexpr const char *kKnown = "llama2, llama3, chatml, zephyr, mistral";
  if (name.count == 0 && !style_)
    return fail(
        failure, kUnsupported,
        "the file has %s; known are %s: name the one that the model was trained with, or encode the whole prompt as a text of your own",
        tokenizer->chat_template().count ? "a chat template that is not known" : "no chat template", kKnown);
  if (name.count > 0 && !(style_ && equal(name, bytes_of(style_->name)))) {
    begins_with_bos_ = has_default_system_ = false;
    style_ = nullptr;
    for (size_t i = chat_style_count(); i-- > 0;)
      if (equal(name, bytes_of(chat_style(i).name))) style_ = &chat_style(i);
    if (!style_)
      return fail(failure, kArgument, "the chat template '%.*s' is not known; expected one of %s",
                  static_cast<int>(name.count < 64 ? name.count : 64), reinterpret_cast<const char *>(name.data), kKnown);
    begins_with_bos_ = style_->begins_with_bos;
  }
  collect_marks();
  return kOk;
}

void ChatTemplate::add_marks(const char *text) {
  while ((text = strchr(text, kMarkSign)) != nullptr) {
    const char *end = strchr(++text, kMarkSign);
    Mark mark = {{reinterpret_cast<const unsigned char *>(text), static_cast<size_t>(end - text)}, -1, false};
    bool known = false;
    for (size_t i = 0; i < mark_count_; i++) known = known || equal(marks_[i].spelling, mark.spelling);
    text = end + 1;
    if (known || mark_count_ == kMaxMarks) continue;
    int32_t id = tokenizer_->find_piece(mark.spelling);
    PieceKind kind = id >= 0 ? tokenizer_->kind(id) : PieceKind::kNormal;
    if (kind == PieceKind::kControl || kind == PieceKind::kUserDefined) mark.id = id;
    mark.user_defined = kind == PieceKind::kUserDefined;
    marks_[mark_count_++] = mark;
  }
}

void ChatTemplate::collect_marks() {
  mark_count_ = 0;
  const char *const texts[] = {style_->before_system,    style_->after_system,    style_->before_user, style_->after_user,
                               style_->before_assistant, style_->after_assistant, style_->answer};
  for (const char *text : texts) add_marks(text);
}

int32_t ChatTemplate::mark_id(Bytes spelling) const {
  for (size_t i = 0; i < mark_count_; i++)
    if (equal(marks_[i].spelling, spelling)) return marks_[i].id;
  return -1;
}

Status ChatTemplate::check(const Messages &messages, Failure *failure) const {
  if (messages.count == 0) return fail(failure, kArgument, "there are 0 messages; expected 1 or more");
  size_t total = 0;
  Role expected = Role::kUser;
  for (size_t i = 0; i < messages.count; i++) {
    int32_t number = messages.roles[i];
    if (number < static_cast<int32_t>(Role::kSystem) || number > static_cast<int32_t>(Role::kAssistant))
      return fail(failure, kArgument, "message %zu has the role %d; expected 1 (system), 2 (user) or 3 (assistant)", i, number);
    if (messages.content_bytes[i] > Tokenizer::kMaxTextBytes - total)
      return fail(failure, kArgument, "the contents up to message %zu have more than the %zu bytes that are possible", i,
                  Tokenizer::kMaxTextBytes);
    total += messages.content_bytes[i];
    Role role = static_cast<Role>(number);
    if (role == Role::kSystem && i > 0) return fail(failure, kArgument, "message %zu is a system message; only message 0 may be one", i);
    if (role == Role::kSystem && style_->system_place == SystemPlace::kNone)
      return fail(failure, kArgument, "message 0 is a system message; this model's template %s has no place for one", name());
    if (role == Role::kSystem || !style_->alternates) continue;
    if (role != expected)
      return fail(failure, kArgument, "message %zu is the %s's; the template %s wants user and assistant by turns, the user first", i,
                  role == Role::kUser ? "user" : "assistant", name());
    expected = role == Role::kUser ? Role::kAssistant : Role::kUser;
  }
  bool alone = messages.count == 1 && messages.roles[0] == static_cast<int32_t>(Role::kSystem);
  if (alone && style_->system_place != SystemPlace::kMessage)
    return fail(failure, kArgument,
                "message 0 is a system message and there is no other; the template %s puts it into a message of the user's", name());
  return kOk;
}

namespace {

// Ids of a text of the chat, put behind those in `to`.
class IdList {
 public:
  Status reserve(Account *account, size_t count, Failure *failure) {
    if (count <= ids_.count()) return kOk;
    Buffer<int32_t> larger;
    size_t room = count < 2 * ids_.count() ? 2 * ids_.count() : count;
    if (Status status = larger.allocate(account, room, "the chat's tokens", failure)) return status;
    if (count_ > 0) memcpy(larger.data(), ids_.data(), count_ * sizeof(int32_t));
    ids_.swap(larger);
    return kOk;
  }
  Status add(Account *account, const int32_t *ids, size_t count, Failure *failure) {
    if (Status status = reserve(account, count_ + count, failure)) return status;
    if (count > 0) memcpy(ids_.data() + count_, ids, count * sizeof(int32_t));
    count_ += count;
    return kOk;
  }
  size_t count() const { return count_; }
  Buffer<int32_t> *buffer() { return &ids_; }

 private:
  Buffer<int32_t> ids_;
  size_t count_ = 0;
};

// Where the next of the pieces that ordinary text is searched for stands in it.
size_t find_bytes(Bytes text, size_t from, Bytes part) {
  for (size_t at = from; text.count - at >= part.count; at++) {
    const void *first = memchr(text.data + at, part.data[0], text.count - at - part.count + 1);
    if (!first) break;
    at = static_cast<size_t>(static_cast<const unsigned char *>(first) - text.data);
    if (memcmp(text.data + at, part.data, part.count) == 0) return at;
  }
  return SIZE_MAX;
}

Status add_segment(const Tokenizer &tokenizer, Bytes text, bool first, IdList *ids, Failure *failure) {
  EncodeOptions options;
  options.space_prefix = first;
  Buffer<int32_t> found;
  size_t count = 0;
  if (Status status = tokenizer.encode(reinterpret_cast<const char *>(text.data), text.count, options, &found, &count, failure))
    return status;
  for (size_t i = 0; i < count; i++)
    if (found[i] == tokenizer.bos() || found[i] == tokenizer.eos() || tokenizer.kind(found[i]) == PieceKind::kControl)
      return fail(failure, kFormat, "the vocabulary makes the control piece %d of ordinary text", found[i]);
  return ids->add(tokenizer.account(), found.data(), count, failure);
}

}  // namespace

Status ChatTemplate::encode(const Messages &messages, bool answer, Buffer<int32_t> *ids, size_t *count, Failure *failure) const {
  if (Status status = check(messages, failure)) return status;
  Account *account = tokenizer_->account();
  Bytes default_system = {reinterpret_cast<const unsigned char *>(default_system_.data()), default_system_.count()};
  ChatWriter writer(*this, *style_, default_system);
  if (Status status = writer.run(messages, answer, account, failure)) return status;
  IdList list;
  for (size_t i = 0; i < writer.part_count(); i++) {
    const ChatWriter::Part &part = writer.part(i);
    if (part.id >= 0) {
      if (Status status = list.add(account, &part.id, 1, failure)) return status;
      continue;
    }
    // Ordinary text is searched for user-defined pieces. The template's own are broken behind their first byte.
    Bytes text = writer.text(part);
    size_t found[kMaxMarks];  // the first place of each mark from `at` on, looked for once
    for (size_t m = 0; m < mark_count_; m++) found[m] = marks_[m].user_defined ? find_bytes(text, 0, marks_[m].spelling) : SIZE_MAX;
    for (size_t at = 0; at < text.count;) {
      size_t end = text.count;
      for (size_t m = 0; m < mark_count_; m++) {
        if (found[m] < at) found[m] = find_bytes(text, at, marks_[m].spelling);
        if (found[m] < end) end = found[m] + 1;
      }
      if (Status status = add_segment(*tokenizer_, {text.data + at, end - at}, at == 0, &list, failure)) return status;
      at = end;
    }
  }
  ids->swap(*list.buffer());
  *count = list.count();
  return kOk;
}

size_t ChatTemplate::stop_tokens(int32_t *to) const {
  size_t count = 0;
  int32_t mark = style_->turn_end ? mark_id(bytes_of(style_->turn_end)) : -1, eos = tokenizer_->eos();
  if (mark >= 0) to[count++] = mark;
  if (eos >= 0 && eos != mark) to[count++] = eos;
  return count;
}

}  // namespace proofinfer
