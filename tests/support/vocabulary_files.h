// GGUF files of nothing but a small vocabulary and a chat template. Plain functions, any thread.
#ifndef PROOFINFER_TESTS_SUPPORT_VOCABULARY_FILES_H
#define PROOFINFER_TESTS_SUPPORT_VOCABULARY_FILES_H

#include <algorithm>
#include <cstdio>

#include "support/gguf.h"

namespace proofinfer_test {

// Kinds of pieces, as files number them.
enum PieceKindValue : int32_t { kNormalPiece = 1, kUnknownPiece = 2, kControlPiece = 3, kUserDefinedPiece = 4, kBytePiece = 6 };

struct VocabularyFile {
  std::string model = "gpt2";  // or "llama"
  std::string bos = "<s>", eos = "</s>";
  std::vector<std::string> specials;  // behind these two
  int32_t special_kind = kControlPiece;
  std::string chat_template;  // empty: none
  bool add_bos = false, add_space_prefix = false;
  std::vector<std::string> words;  // of "llama": ordinary pieces, better ones first, besides bytes and letters

  // The letter that a byte-level vocabulary spells a byte with.
  static std::string letter(int byte) {
    int code = byte <= 0x20 ? 0x100 + byte : byte >= 0x7F && byte <= 0xA0 ? 0x121 + byte - 0x7F : byte == 0xAD ? 0x143 : byte;
    if (code < 0x80) return std::string(1, char(code));
    return {char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))};
  }

  Bytes bytes() const {
    std::vector<std::string> pieces;
    std::vector<int32_t> kinds;
    std::vector<float> scores;
    auto add = [&](const std::string &piece, int32_t kind, float score = 0) {
      for (const std::string &known : pieces)
        if (known == piece) return;
      pieces.push_back(piece), kinds.push_back(kind), scores.push_back(score);
    };
    add("<unk>", kUnknownPiece);
    add(bos, kControlPiece);
    add(eos, kControlPiece);
    for (const std::string &special : specials) add(special, special_kind);
    const bool by_bytes = model == "gpt2";
    for (int byte = 0; byte < 256; byte++) {
      char spelled[8];
      std::snprintf(spelled, sizeof(spelled), "<0x%02X>", unsigned(byte));
      add(by_bytes ? letter(byte) : spelled, by_bytes ? kNormalPiece : kBytePiece);
    }
    for (size_t i = 0; i < words.size(); i++) add(words[i], kNormalPiece, -1.0f - float(i));
    GgufFile file;
    file.add("general.architecture", "llama");
    file.add("tokenizer.ggml.model", model);
    if (by_bytes) file.add("tokenizer.ggml.pre", "gpt-2");
    file.add("tokenizer.ggml.tokens", pieces);
    file.add_array("tokenizer.ggml.token_type", kI32, kinds);
    if (by_bytes)
      file.add("tokenizer.ggml.merges", std::vector<std::string>{});
    else
      file.add_array("tokenizer.ggml.scores", kF32, scores);
    auto id_of = [&](const std::string &piece) { return uint32_t(std::find(pieces.begin(), pieces.end(), piece) - pieces.begin()); };
    file.add("tokenizer.ggml.bos_token_id", id_of(bos));
    file.add("tokenizer.ggml.eos_token_id", id_of(eos));
    file.add("tokenizer.ggml.add_bos_token", add_bos);
    file.add("tokenizer.ggml.add_space_prefix", add_space_prefix);
    if (!chat_template.empty()) file.add("tokenizer.chat_template", chat_template);
    return file.bytes();
  }
};

}  // namespace proofinfer_test

#endif
