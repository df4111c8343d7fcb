// Small GGUF vocabularies of both models. As thread-safe as the strings they are made of.
#ifndef PROOFINFER_TESTS_SUPPORT_VOCABULARY_H
#define PROOFINFER_TESTS_SUPPORT_VOCABULARY_H

#include <string>
#include <vector>

#include "support/gguf.h"

namespace proofinfer_test {

enum PieceType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct GgufPiece {
  std::string text;  // as the file spells it
  float score = 0.0f;
  int32_t type = kNormal;
};

// The letters that byte-level vocabularies spell bytes with.
inline std::string letters_of(const std::string &bytes) {
  static const std::vector<std::string> kLetters = [] {
    std::vector<std::string> letters;
    int next = 256;
    for (int b = 0; b < 256; b++) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const int code = printable ? b : next++;
      letters.push_back(code < 128 ? std::string(1, char(code)) : std::string{char(0xC0 | code >> 6), char(0x80 | (code & 63))});
    }
    return letters;
  }();
  std::string spelled;
  for (unsigned char byte : bytes) spelled += kLetters[byte];
  return spelled;
}

// Byte-level: all 256 bytes in order, what the rules make, then `others`. Rules are pairs of byte strings, strongest first.
struct RuleVocabulary {
  std::string pre = "gpt-2";
  std::vector<std::pair<std::string, std::string>> rules;
  std::vector<GgufPiece> others;

  std::vector<GgufPiece> pieces() const {
    std::vector<GgufPiece> all;
    for (int b = 0; b < 256; b++) all.push_back({letters_of(std::string(1, char(b)))});
    for (const auto &[left, right] : rules) all.push_back({letters_of(left + right)});
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }
};

// The three arrays of pieces.
inline void add_pieces(GgufFile *file, const std::vector<GgufPiece> &pieces) {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int32_t> types;
  for (const GgufPiece &piece : pieces) texts.push_back(piece.text), scores.push_back(piece.score), types.push_back(piece.type);
  file->add("tokenizer.ggml.tokens", texts);
  file->add_array("tokenizer.ggml.scores", kF32, scores);
  file->add_array("tokenizer.ggml.token_type", kI32, types);
}

inline GgufFile rule_file(const RuleVocabulary &vocabulary) {
  GgufFile file;
  file.add("general.architecture", "llama");
  file.add("tokenizer.ggml.model", "gpt2");
  file.add("tokenizer.ggml.pre", vocabulary.pre);
  add_pieces(&file, vocabulary.pieces());
  std::vector<std::string> merges;
  for (const auto &[left, right] : vocabulary.rules) merges.push_back(letters_of(left) + " " + letters_of(right));
  file.add("tokenizer.ggml.merges", merges);
  return file;
}

// SentencePiece-like: "<unk>", "<s>", "</s>", the 256 byte pieces, then `others`.
inline std::vector<GgufPiece> scored_pieces(const std::vector<GgufPiece> &others) {
  std::vector<GgufPiece> all = {{"<unk>", 0, kUnknown}, {"<s>", 0, kControl}, {"</s>", 0, kControl}};
  const char *digits = "0123456789ABCDEF";
  for (int b = 0; b < 256; b++) all.push_back({std::string("<0x") + digits[b >> 4] + digits[b & 15] + ">", 0, kByte});
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

inline GgufFile scored_file(const std::vector<GgufPiece> &pieces) {
  GgufFile file;
  file.add("general.architecture", "llama");
  file.add("tokenizer.ggml.model", "llama");
  add_pieces(&file, pieces);
  return file;
}

}  // namespace proofinfer_test

#endif
