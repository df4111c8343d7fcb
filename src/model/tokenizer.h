// Text to token ids and back, in near-linear time: as the llama2.c reference does it for its tokenizer.bin, as llama.cpp does it for the
// vocabularies `llama` and `gpt2` of GGUF files. Immutable after create: any thread.
//
// Pieces are byte strings with explicit lengths: empty ones and ones with NUL inside are ordinary (the reference's C strings end at a NUL),
// and of equal pieces the lowest id is the one that text turns into.
#ifndef PROOFINFER_MODEL_TOKENIZER_H
#define PROOFINFER_MODEL_TOKENIZER_H

#include "base/object.h"
#include "base/source.h"
#include "format/piece_table.h"
#include "format/vocabulary.h"
#include "model/settings.h"
#include "model/tokenizer_merger.h"
#include "model/tokenizer_specials.h"
#include "model/tokenizer_table.h"

namespace proofinfer {

struct EncodeOptions {
  bool bos = false, eos = false;  // these ids around the text
  bool special = false;           // control pieces spelled in the text become their ids
  bool space_prefix = true;       // the space that the vocabulary puts before a text, if it does
};

class Tokenizer : public Object {
 public:
  static constexpr Kind kKind = Kind::kTokenizer;
  // Texts are shorter than this, so that a position fits 32 bits.
  static constexpr size_t kMaxTextBytes = (size_t(1) << 31) - 16;

  // From a GGUF file or a tokenizer.bin. vocab_size: 0 and up; 0 takes what a GGUF file has. Errors: those of the readers.
  static Status create(Source *source, int32_t vocab_size, const Settings &settings, Tokenizer **tokenizer, Failure *failure);
  Tokenizer(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  const Vocabulary &vocabulary() const { return vocabulary_; }
  int32_t vocab_size() const { return static_cast<int32_t>(vocabulary_.count); }
  int32_t bos() const { return vocabulary_.bos; }  // -1: none
  int32_t eos() const { return vocabulary_.eos; }
  bool has(int32_t id) const { return id >= 0 && id < vocab_size(); }

  // What the piece is in a text, its score and kind. id: inside the vocabulary.
  Bytes piece(int32_t id) const {
    size_t i = static_cast<size_t>(id);
    return vocabulary_.texts.offsets.count() ? vocabulary_.texts.at(i) : vocabulary_.pieces.at(i);
  }
  float score(int32_t id) const { return vocabulary_.score(static_cast<size_t>(id)); }
  PieceKind kind(int32_t id) const { return vocabulary_.kind(static_cast<size_t>(id)); }
  // The lowest id of these bytes, as the file spells control and user-defined pieces; -1: none, and for no bytes. Looks at every piece.
  int32_t find_piece(Bytes bytes) const;
  // The file's chat template; empty: none.
  Bytes chat_template() const { return {vocabulary_.chat_template.data(), vocabulary_.chat_template.count()}; }

  // The ids that end a generation by default: [stop_token_count()].
  const int32_t *stop_tokens() const { return stop_tokens_; }
  size_t stop_token_count() const { return stop_token_count_; }

  // ids: [*count] on success, at most text_bytes + 3, and one more for every special piece in the text. Takes at most 56 bytes of memory a
  // byte of text, and 12 for every special piece, and gives all but `ids` back.
  // Errors: kArgument (text too long), kFormat (the vocabulary lacks a piece that the text or a flag needs), kMemory, kLimit.
  Status encode(const char *text, size_t text_bytes, const EncodeOptions &options, Buffer<int32_t> *ids, size_t *count,
                Failure *failure) const;

  // What `token` adds to a text after `previous` (-1: none): one leading space is dropped after BOS where encoding puts one; control, unknown
  // and unused pieces of a GGUF file add nothing, a byte piece its byte (of a tokenizer.bin, whose pieces have no kinds, "<0x" two
  // hexadecimal digits ">"; any other spelling is ordinary text). `spelled`: the piece itself. Valid as long as the tokenizer.
  Bytes decode(int32_t previous, int32_t token, bool spelled) const;

 private:
  static constexpr int32_t kBos = 1, kEos = 2, kFirstByte = 3;  // ids that tokenizer.bin fixes
  static constexpr size_t kMaxStopTokens = 16;

  // The ids of a text while they are made.
  struct Ids {
    const unsigned char *text;  // all of it
    int32_t *data;
    size_t count;
    Merger *merger;
  };

  Status read(Source *source, size_t vocab_size, Failure *failure);
  Status build(Failure *failure);
  Status build_units(uint64_t seed, Failure *failure);
  Status build_pairs(uint64_t seed, Failure *failure);
  Status build_rules(uint64_t seed, Failure *failure);
  Status build_words(uint64_t seed, Failure *failure);
  void find_stop_tokens();
  void add_stop_token(int32_t id);
  // Whether characters and merges may become this piece.
  bool is_plain(uint32_t id) const;
  // Whether the last byte of one piece and the first of the next stand side by side where some pair merges, or one is empty.
  bool may_join(int32_t left, int32_t right) const;
  Status add_text(Bytes text, bool space_prefix, Ids *ids, Failure *failure) const;
  Status add_words(Bytes text, Ids *ids, Failure *failure) const;
  Status add_word(Bytes word, Ids *ids, Failure *failure) const;
  Status add_space(Ids *ids, Failure *failure) const;
  Status add_units(Bytes text, Ids *ids, Failure *failure) const;
  Status add_characters(Bytes text, Ids *ids, Failure *failure) const;
  Status add_bytes(Bytes bytes, Ids *ids, Failure *failure) const;
  Status fail_byte(const unsigned char *byte, const Ids &ids, Failure *failure) const;
  Status merge(size_t from, Ids *ids, Failure *failure) const;
  size_t segment_end(const int32_t *ids, size_t begin, size_t count) const;

  Vocabulary vocabulary_;
  IdTable pairs_;  // left id << 32 | right id (both canonical) -> what they merge to, and in which order
  Specials specials_;
  PieceTable words_;  // the pieces that a whole word may be, if words are looked up
  int32_t stop_tokens_[kMaxStopTokens];
  size_t stop_token_count_ = 0;

  // Where units are characters, not bytes:
  Buffer<int32_t> canonical_;  // [vocab_size] the lowest id with the same bytes
  Buffer<uint32_t> ends_;      // [vocab_size] first byte | last byte << 8, or kEmptyPiece
  IdTable units_;              // length << 32 | bytes, of pieces of 1 to 4 bytes -> id
  int32_t single_[256];        // the id that a unit of this one byte gives; -1: none
  uint64_t joins_[256][4];     // bit [left][right]: some pair in pairs_ has a left piece ending and a right piece beginning so
};

}  // namespace proofinfer

#endif
