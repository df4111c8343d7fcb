// Token ids to whole UTF-8 characters. One thread at a time (guarded by busy()).
#ifndef PROOFINFER_MODEL_STREAM_H
#define PROOFINFER_MODEL_STREAM_H

#include "base/object.h"
#include "model/tokenizer.h"

namespace proofinfer {

// Lets whole valid UTF-8 characters through and holds the beginning of one back. Every maximal part of bytes that can be no character becomes
// one U+FFFD (the substitution that Unicode recommends: a byte that cannot follow what is held ends it and is looked at afresh).
// Plain data: a copy can be run ahead to see what comes out.
class Utf8Filter {
 public:
  // What `bytes` complete, to out, which may be nullptr to count only. The number of bytes: at most 3 + 3 * bytes.count, as the held part
  // and each byte may turn into one U+FFFD.
  size_t push(Bytes bytes, char *out);
  // The held part as one U+FFFD, if there is one; then nothing is held.
  size_t flush(char *out);

 private:
  static constexpr size_t kReplacementBytes = 3;
  unsigned char held_[3] = {0, 0, 0};  // [held_count_] a beginning that valid bytes can complete
  unsigned char held_count_ = 0;
};

class Stream : public Object {
 public:
  static constexpr Kind kKind = Kind::kStream;
  // previous: the id before the first, or -1. Its memory comes from where the tokenizer's does.
  static Status create(const Tokenizer *tokenizer, int32_t previous, Stream **stream, Failure *failure);
  Stream(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  // The text that `token` completes. *needed: its bytes. kBufferTooSmall: nothing has changed. kArgument: an id outside the vocabulary.
  Status push(int32_t token, char *buffer, size_t capacity, size_t *needed, Failure *failure);
  // The rest. The same errors.
  Status flush(char *buffer, size_t capacity, size_t *needed, Failure *failure);
  BusyFlag *busy() { return &busy_; }

 private:
  Ref<const Tokenizer> tokenizer_;
  BusyFlag busy_;
  Utf8Filter filter_;
  int32_t previous_ = -1;
};

}  // namespace proofinfer

#endif
