#include "format/tokenizer_bin.h"

#include <math.h>
#include <string.h>

namespace proofinfer {

namespace {

constexpr size_t kFileHeaderBytes = 4;   // the longest piece
constexpr size_t kPieceHeaderBytes = 8;  // score, length

using ull = unsigned long long;

// ---- What a wrong file looks like ----

constexpr size_t kHeadBytes = 64;

struct Head {
  unsigned char bytes[kHeadBytes + 1];  // NUL after the end
  size_t count;
  uint64_t file_bytes;

  bool starts_with(const char *text) const {
    size_t n = strlen(text);
    return count >= n && memcmp(bytes, text, n) == 0;
  }
};

bool is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Whether the first mark after white space begins with `lowercase`, in any case.
bool starts_markup(const Head &head, const char *lowercase) {
  size_t at = 0;
  while (at < head.count && is_space(head.bytes[at])) at++;
  for (; *lowercase; lowercase++, at++) {
    unsigned char c = head.bytes[at];
    if (c >= 'A' && c <= 'Z') c = static_cast<unsigned char>(c + 32);
    if (c != static_cast<unsigned char>(*lowercase)) return false;
  }
  return true;
}

// Files with a signature. As the advisory first number of a tokenizer.bin each would mean a longest piece of hundreds of megabytes.
const char *known_signature(const Head &head) {
  if (head.file_bytes == 0) return "an empty file";
  if (head.starts_with("version https://git-lfs")) return "a Git LFS pointer: the file itself was not downloaded";
  if (starts_markup(head, "<!doctype") || starts_markup(head, "<html") || starts_markup(head, "<?xml")) return "a web page (HTML or XML)";
  if (head.starts_with("24ka")) return "a llama2.c checkpoint (magic \"ak42\")";
  if (head.starts_with("PK\3\4")) return "a ZIP archive or a PyTorch file";
  return nullptr;
}

bool is_text(const Head &head) {
  if (head.count < kFileHeaderBytes) return false;
  for (size_t i = 0; i < head.count; i++)
    if ((head.bytes[i] < 0x20 && !is_space(head.bytes[i])) || head.bytes[i] == 0x7F) return false;
  return true;
}

// The seven integers of a legacy checkpoint: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len.
bool is_legacy_checkpoint(const Head &head) {
  int32_t field[7];
  if (head.count < sizeof(field)) return false;
  for (size_t i = 0; i < 7; i++) {
    field[i] = load_i32(head.bytes + 4 * i);
    if (field[i] == 0 || (field[i] < 0 && i != 5) || field[i] > 1 << 24) return false;
  }
  return field[0] % field[3] == 0 && field[3] % field[4] == 0;
}

// Files without a reliable signature: asked only when the bytes turned out to be no tokenizer.bin.
const char *likeness(const Head &head) {
  if (head.starts_with("{")) return "JSON text";
  if (is_text(head)) return "text";
  // A protobuf whose first field is a piece: tag, length, tag, length, "<unk>".
  if (head.count > 9 && head.bytes[0] == 0x0A && memcmp(head.bytes + 4, "<unk>", 5) == 0) return "a SentencePiece model (tokenizer.model)";
  if (is_legacy_checkpoint(head)) return "a llama2.c checkpoint";
  return nullptr;
}

// ---- The pieces, one after another ----

// Walks the file, whose header is there, through a window, so that the system is asked once for many pieces. Invariants: offset_ <= file size;
// window_offset_ <= offset_, which never goes back.
class PieceReader {
 public:
  PieceReader(Source *source, size_t wanted) : source_(source), wanted_(wanted) {}

  // The score and the length of the next piece; its bytes are proved to exist. Then its bytes are taken by copy() or left by skip().
  Status next(float *score, size_t *length, Failure *failure);
  Status copy(unsigned char *to, size_t length, Failure *failure);
  void skip(size_t length) { offset_ += length; }

 private:
  static constexpr size_t kWindowBytes = 8192;  // on the stack

  uint64_t left() const { return source_->size_bytes() - offset_; }
  size_t window_left() const {
    return offset_ - window_offset_ < window_count_ ? static_cast<size_t>(window_offset_ + window_count_ - offset_) : 0;
  }
  const unsigned char *window_at() const { return window_ + (offset_ - window_offset_); }
  // Moves the window so that it begins at offset_.
  Status refill(Failure *failure);

  Source *source_;
  size_t wanted_;
  size_t index_ = 0;  // of the next piece
  uint64_t offset_ = kFileHeaderBytes;
  uint64_t window_offset_ = 0;
  size_t window_count_ = 0;
  unsigned char window_[kWindowBytes];
};

Status PieceReader::refill(Failure *failure) {
  size_t count = left() < kWindowBytes ? static_cast<size_t>(left()) : kWindowBytes;
  window_count_ = 0;
  if (Status status = source_->read(offset_, window_, count, "tokenizer.bin", failure)) return status;
  window_offset_ = offset_;
  window_count_ = count;
  return kOk;
}

Status PieceReader::next(float *score, size_t *length, Failure *failure) {
  if (left() < kPieceHeaderBytes)
    return fail(
        failure, kTruncated,
        "tokenizer.bin: %zu pieces wanted, the file ends in piece %zu: its score and length at offset %llu need %zu bytes, found %llu",
        wanted_, index_, ull(offset_), kPieceHeaderBytes, ull(left()));
  if (window_left() < kPieceHeaderBytes)
    if (Status status = refill(failure)) return status;
  *score = load_f32(window_at());
  int32_t declared = load_i32(window_at() + 4);
  if (!isfinite(*score))
    return fail(failure, kFormat, "tokenizer.bin: piece %zu, offset %llu: expected a finite score, found %s (bits 0x%08lx)", index_,
                ull(offset_), isnan(*score) ? "NaN" : "infinity", static_cast<unsigned long>(load_u32(window_at())));
  if (declared < 0)
    return fail(failure, kFormat, "tokenizer.bin: piece %zu, offset %llu: expected a length of 0 or more, found %ld", index_,
                ull(offset_ + 4), static_cast<long>(declared));
  offset_ += kPieceHeaderBytes;
  if (static_cast<uint64_t>(declared) > left())
    return fail(failure, kTruncated,
                "tokenizer.bin: %zu pieces wanted, the file ends in piece %zu: its bytes at offset %llu should be %ld, found %llu", wanted_,
                index_, ull(offset_), static_cast<long>(declared), ull(left()));
  *length = static_cast<size_t>(declared);
  index_++;
  return kOk;
}

Status PieceReader::copy(unsigned char *to, size_t length, Failure *failure) {
  while (length > 0) {
    if (window_left() == 0) {
      if (length >= kWindowBytes) {
        if (Status status = source_->read(offset_, to, length, "tokenizer.bin", failure)) return status;
        offset_ += length;
        return kOk;
      }
      if (Status status = refill(failure)) return status;
    }
    size_t count = length < window_left() ? length : window_left();
    memcpy(to, window_at(), count);
    to += count, length -= count, offset_ += count;
  }
  return kOk;
}

// First pass: everything is valid, and how many bytes the pieces have.
Status measure(Source *source, size_t wanted, size_t *total, Failure *failure) {
  if (source->size_bytes() < kFileHeaderBytes)
    return fail(failure, kTruncated,
                "tokenizer.bin: %zu pieces wanted, the file ends before piece 0: the longest piece's length at offset 0 needs %zu bytes, "
                "found %llu",
                wanted, kFileHeaderBytes, ull(source->size_bytes()));
  PieceReader reader(source, wanted);
  *total = 0;
  for (size_t i = 0; i < wanted; i++) {
    float score;
    size_t length;
    if (Status status = reader.next(&score, &length, failure)) return status;
    if (length > SIZE_MAX - *total)
      return fail(failure, kMemory, "tokenizer.bin: piece %zu: %zu bytes after %zu are more than this machine can address", i, length,
                  *total);
    *total += length;
    reader.skip(length);
  }
  return kOk;
}

// Second pass. The file may have changed since the first: every number is checked again, against the memory there now is.
Status fill(Source *source, size_t wanted, size_t total, Vocabulary *vocabulary, Failure *failure) {
  PieceReader reader(source, wanted);
  size_t used = 0, longest = 0;
  for (size_t i = 0; i < wanted; i++) {
    size_t length;
    if (Status status = reader.next(&vocabulary->scores[i], &length, failure)) return status;
    if (length > total - used) return fail(failure, kIo, "tokenizer.bin: piece %zu: the file changed while it was read", i);
    if (length > 0)
      if (Status status = reader.copy(vocabulary->pieces.bytes.data() + used, length, failure)) return status;
    vocabulary->pieces.offsets[i] = used;
    used += length;
    if (length > longest) longest = length;
  }
  vocabulary->pieces.offsets[wanted] = used;
  vocabulary->longest_bytes = longest;
  vocabulary->count = wanted;
  return kOk;
}

}  // namespace

Status read_tokenizer_bin(Source *source, size_t wanted, Account *account, Vocabulary *vocabulary, Failure *failure) {
  Head head = {};
  head.file_bytes = source->size_bytes();
  head.count = head.file_bytes < kHeadBytes ? static_cast<size_t>(head.file_bytes) : kHeadBytes;
  if (Status status = source->read(0, head.bytes, head.count, "tokenizer.bin", failure)) return status;
  if (const char *what = known_signature(head))
    return fail(failure, kUnrecognized, "not a tokenizer.bin: this is %s (%llu bytes)", what, ull(head.file_bytes));

  size_t total = 0;
  if (Status status = measure(source, wanted, &total, failure)) {
    const char *what = status == kFormat || status == kTruncated ? likeness(head) : nullptr;
    if (!what) return status;
    Failure reason = *failure;
    return fail(failure, kUnrecognized, "not a tokenizer.bin: this looks like %s (%s)", what, reason.message);
  }
  if (Status status = vocabulary->pieces.offsets.allocate(account, wanted + 1, "the tokenizer's piece offsets", failure)) return status;
  if (Status status = vocabulary->scores.allocate(account, wanted, "the tokenizer's scores", failure)) return status;
  if (Status status = vocabulary->pieces.bytes.allocate(account, total, "the tokenizer's pieces", failure)) return status;
  return fill(source, wanted, total, vocabulary, failure);
}

}  // namespace proofinfer
