#include "model/stream.h"

#include <string.h>

#include "model/unicode.h"

namespace proofinfer {

namespace {

bool may_continue(const unsigned char *held, size_t count, unsigned char byte) {
  return count == 1 ? may_be_second(held[0], byte) : (byte & 0xC0) == 0x80;
}

size_t put(const void *bytes, size_t count, char *out, size_t at) {
  if (out) memcpy(out + at, bytes, count);
  return at + count;
}

}  // namespace

size_t Utf8Filter::flush(char *out) {
  bool held = held_count_ > 0;
  held_count_ = 0;
  return held ? put("\xEF\xBF\xBD", kReplacementBytes, out, 0) : 0;
}

size_t Utf8Filter::push(Bytes bytes, char *out) {
  size_t written = 0;
  for (size_t i = 0; i < bytes.count; i++) {
    unsigned char byte = bytes.data[i];
    if (held_count_ > 0 && !may_continue(held_, held_count_, byte)) written += flush(out ? out + written : nullptr);
    size_t whole = character_bytes(held_count_ > 0 ? held_[0] : byte);
    if (whole == 0) {
      written = put("\xEF\xBF\xBD", kReplacementBytes, out, written);
    } else if (held_count_ + size_t(1) < whole) {
      held_[held_count_++] = byte;
    } else {
      written = put(held_, held_count_, out, written);
      written = put(&byte, 1, out, written);
      held_count_ = 0;
    }
  }
  return written;
}

Status Stream::create(const Tokenizer *tokenizer, int32_t previous, Stream **stream, Failure *failure) {
  if (previous != -1 && !tokenizer->has(previous))
    return fail(failure, kArgument, "previous is %d; expected -1 or 0 to %d", previous, tokenizer->vocab_size() - 1);
  Stream *made = Object::make<Stream>(tokenizer->account()->hooks(), 0, "stream", failure);
  if (!made) return failure->status;
  made->tokenizer_ = Ref<const Tokenizer>::share(tokenizer);
  made->previous_ = previous;
  *stream = made;
  return kOk;
}

Status Stream::push(int32_t token, char *buffer, size_t capacity, size_t *needed, Failure *failure) {
  *needed = 0;
  if (!tokenizer_->has(token)) return fail(failure, kArgument, "token is %d; expected 0 to %d", token, tokenizer_->vocab_size() - 1);
  Bytes bytes = tokenizer_->decode(previous_, token, false);
  Utf8Filter ahead = filter_;
  *needed = ahead.push(bytes, nullptr);
  if (*needed > capacity) return fail(failure, kBufferTooSmall, "text: needs a capacity of %zu; found %zu", *needed, capacity);
  filter_.push(bytes, buffer);
  previous_ = token;
  return kOk;
}

Status Stream::flush(char *buffer, size_t capacity, size_t *needed, Failure *failure) {
  Utf8Filter ahead = filter_;
  *needed = ahead.flush(nullptr);
  if (*needed > capacity) return fail(failure, kBufferTooSmall, "text: needs a capacity of %zu; found %zu", *needed, capacity);
  filter_.flush(buffer);
  return kOk;
}

}  // namespace proofinfer
