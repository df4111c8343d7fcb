// A validated vocabulary, whatever format it came from. Immutable once read: any thread.
#ifndef PROOFINFER_FORMAT_VOCABULARY_H
#define PROOFINFER_FORMAT_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

namespace proofinfer {

struct Bytes {
  const unsigned char *data;  // [count]
  size_t count;
};

// The format's values of tokenizer.ggml.token_type.
enum class PieceKind : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

enum class TokenizerModel : uint8_t {
  kLlama2c,  // llama2.c's tokenizer.bin: merges by score over characters
  kLlama,    // SentencePiece's, with kinds of pieces and a mark for spaces
  kGpt2,     // byte-level byte pair encoding: merges by rank inside words
};

enum class PreTokenizer : uint8_t { kDefault, kGpt2, kSmollm, kLlama3 };

// Byte strings one after another; any bytes, may be empty.
struct Pieces {
  Buffer<unsigned char> bytes;  // [offsets[count]]
  Buffer<size_t> offsets;       // [count + 1], piece i is bytes[offsets[i]] up to bytes[offsets[i + 1]]

  size_t length(size_t i) const { return offsets[i + 1] - offsets[i]; }
  Bytes at(size_t i) const { return {bytes.data() + offsets[i], length(i)}; }
};

// One rule of byte pair encoding; earlier ones are stronger.
struct Merge {
  int32_t left, right, merged;
};

struct Vocabulary {
  TokenizerModel model = TokenizerModel::kLlama2c;
  PreTokenizer pre = PreTokenizer::kDefault;
  const char *pre_name = "";  // static; as the file spells it
  size_t count = 0;
  size_t longest_bytes = 0;  // of the pieces that are really there
  Pieces pieces;             // [count] kLlama: with U+2581 for spaces; kGpt2: the bytes that the file's letters stand for
  Pieces texts;              // [count] kLlama: with spaces for U+2581 in ordinary pieces; otherwise not there
  Buffer<float> scores;      // [count], finite; not there: all 0
  Buffer<PieceKind> kinds;   // [count]; not there: all kNormal
  Buffer<Merge> merges;      // kGpt2, strongest first
  int32_t byte_ids[256];     // kLlama: the pieces of bytes; kGpt2: the pieces of one byte; -1: none. Not for kLlama2c
  int32_t bos = -1, eos = -1, eot = -1, eom = -1, unknown = -1, padding = -1;  // -1: none
  bool add_bos = true, add_eos = false, add_space_prefix = true;               // what the file asks for
  bool whole_words = false;                                                    // kGpt2: a word that is a piece is not merged
  Buffer<unsigned char> chat_template;

  size_t length(size_t i) const { return pieces.length(i); }
  const unsigned char *piece(size_t i) const { return pieces.at(i).data; }
  PieceKind kind(size_t i) const { return kinds.count() ? kinds[i] : PieceKind::kNormal; }
  float score(size_t i) const { return scores.count() ? scores[i] : 0.0f; }
};

}  // namespace proofinfer

#endif
