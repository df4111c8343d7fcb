// Writes the seeds of all fuzz targets: make_seeds FOLDER gives FOLDER/<target>/<seed>. Good files of every format, one of each way in which
// headers lie, and programs that visit every operation of the session target.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/checksum.h"
#include "harness.h"
#include "support/checkpoint.h"
#include "support/gguf_lies.h"
#include "support/gguf_model.h"
#include "support/vocabulary_lies.h"

using proofinfer_test::Format;
using proofinfer_test::Shape;
using Bytes = std::vector<uint8_t>;

namespace {

std::string g_folder;

void write(const std::string &target, const std::string &name, const Bytes &bytes) {
  mkdir((g_folder + "/" + target).c_str(), 0777);
  const std::string path = g_folder + "/" + target + "/" + name;
  FILE *file = std::fopen(path.c_str(), "wb");
  HOLDS(file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && std::fclose(file) == 0);
}

Bytes joined(Bytes front, const Bytes &back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

Bytes text(const std::string &s) { return Bytes(s.begin(), s.end()); }

// The same file for the three targets that take checkpoints.
void write_checkpoint(const std::string &name, const Bytes &file) {
  write("model", name, file);
  write("differential", name, joined({0, 1, 2, 3}, file));
  for (uint8_t to = 0; to < 4; to++)
    write("convert", name + "_to_" + std::to_string(to), joined({to, uint8_t(to == 2 ? 2 : 0), 0, 0, 0}, file));
}

void write_good_checkpoints() {
  const Shape shapes[] = {
      {4, 6, 2, 2, 1, 5, 8}, {4, 6, 1, 2, 1, -5, 8}, {12, 8, 1, 6, 3, 17, 3}, {2, 2, 1, 1, 1, 1, 1}, {16, 32, 1, 2, 2, -20, 70}};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
    for (Format format : proofinfer_test::kFormats)
      for (int32_t group_size : {1, 2}) {
        if (group_size == 1 && format != Format::kVersion2) continue;
        write_checkpoint("good_" + std::to_string(i) + "_" + std::to_string(int(format)) + "_" + std::to_string(group_size),
                         checkpoint(format, shapes[i], i, group_size));
      }
  Bytes not_finite = checkpoint(Format::kVersion1, shapes[0], 9, 1);
  for (size_t at = 256; at + 4 <= not_finite.size(); at += 68) not_finite[at + 3] = 0x7f, not_finite[at + 2] = 0xc0;
  write_checkpoint("not_finite", not_finite);
}

void write_bad_checkpoints() {
  const Shape shape = {4, 6, 2, 2, 1, 5, 8};
  for (Format format : proofinfer_test::kFormats) {
    const std::string tag = std::to_string(int(format));
    const Bytes good = checkpoint(format, shape, 1, 2);
    const size_t header = header_bytes(format);
    for (size_t size : {size_t(1), size_t(3), header - 1, header, header + 9, good.size() / 2, good.size() - 1})
      write_checkpoint("cut_" + tag + "_" + std::to_string(size), Bytes(good.begin(), good.begin() + std::ptrdiff_t(size)));
    write_checkpoint("longer_" + tag, joined(good, {0}));
    for (size_t field = 0; field < 7; field++)
      for (uint8_t top : {uint8_t(0x00), uint8_t(0x80), uint8_t(0x7f)}) {
        Bytes bad = good;
        const size_t at = shape_offset(format) + 4 * field;
        for (size_t k = 0; k < 4; k++) bad[at + k] = top == 0x7f ? 0xff : 0;
        bad[at + 3] = top;
        write("model", "field_" + tag + "_" + std::to_string(field) + "_" + std::to_string(top), bad);
      }
    for (const Shape &odd : {Shape{4, 6, 1, 3, 1, 5, 8}, Shape{12, 6, 1, 6, 4, 5, 8}, Shape{4, 6, 1, 4, 1, 5, 8},
                             Shape{1 << 16, 1 << 16, 1 << 30, 2, 2, 1, 1}}) {
      Bytes bad = checkpoint_header(format, odd, 2);
      bad.resize(300);
      write("model", "shape_" + tag + "_" + std::to_string(odd.dim) + "_" + std::to_string(odd.n_heads), bad);
    }
  }
  Bytes v2 = checkpoint(Format::kVersion2, shape, 1, 2);
  for (uint8_t group_size : {0, 3, 4}) {
    v2[37] = group_size;
    write("model", "group_" + std::to_string(group_size), v2);
  }
  v2[36] = 2;
  write("model", "flag", v2);
  v2[4] = 3;
  write("model", "version", v2);
  Bytes swapped = checkpoint(Format::kLegacy, shape, 1, 1);
  for (size_t i = 0; i < 28; i += 4) std::swap(swapped[i], swapped[i + 3]), std::swap(swapped[i + 1], swapped[i + 2]);
  write("model", "swapped", swapped);
}

void write_wrong_files() {
  const std::string zeros(64, '\0');
  const std::string wrongs[] = {"",
                                "<!DOCTYPE html>\n<html></html>\n",
                                " <HTML lang=\"en\">",
                                "<?xml version=\"1.0\"?>",
                                "version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
                                "GGUF" + zeros,
                                "FUGG" + zeros,
                                "lmgg" + zeros,
                                "tjgg" + zeros,
                                "fmgg" + zeros,
                                "ak42" + zeros,
                                "PK\3\4" + zeros,
                                "\x80\2}q" + zeros,
                                "\x1f\x8b" + zeros,
                                "\x7f"
                                "ELF" +
                                    zeros,
                                "%PDF-1.4" + zeros,
                                "\x89PNG" + zeros,
                                std::string("\x10\0\0\0\0\0\0\0", 8) + "{\"a\":1}" + zeros,
                                "{\"model\": {}}",
                                "the quick brown fox jumps over the lazy dog",
                                std::string("\x0A\x0E\x0A\x05", 4) + "<unk>\x15" + zeros};
  for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
    write("model", "wrong_" + std::to_string(i), text(wrongs[i]));
    write("tokenizer", "wrong_" + std::to_string(i), joined({200, 0}, text(wrongs[i])));
  }
}

void write_tokenizers() {
  using proofinfer_test::Piece;
  auto put = [](const std::string &name, const std::vector<Piece> &pieces, size_t vocab_size, size_t cut) {
    Bytes file = proofinfer_test::tokenizer_file(pieces);
    file.resize(file.size() - cut);
    write("tokenizer", name, joined({uint8_t(vocab_size), uint8_t(vocab_size >> 8)}, file));
  };
  const std::vector<Piece> full = proofinfer_test::small_vocabulary({"a", "b", "ab", "aba", " a", "\xC3\xA9"});
  const std::vector<Piece> odd = {{"<unk>", 0.0f}, {"", -1.5f},  {" ", 1.0f},    {std::string("a\0b", 3), 2.0f},  {"x", -0.0f},
                                  {"x", 7.0f},     {"xx", 3.0f}, {"xxxx", 4.0f}, {std::string(300, 'q'), -1e30f}, {"<0x41>", 1.0f}};
  put("full", full, full.size(), 0);
  put("odd", odd, odd.size(), 0);
  put("fewer", odd, odd.size() + 1, 0);
  put("one", {{"", 0.0f}}, 1, 0);
  put("none", odd, 0, 0);
  for (size_t cut : {1, 3, 7, 300}) put("cut_" + std::to_string(cut), odd, odd.size(), cut);
  put("nan", {{"a", __builtin_nanf("")}}, 1, 0);
  put("infinity", {{"a", -__builtin_inff()}}, 1, 0);
  put("long", {{std::string(9000, 'z'), 1.0f}, {" ", 1.0f}, {std::string(8190, 'y'), 1.0f}}, 3, 0);
  Bytes negative = proofinfer_test::tokenizer_file(odd);
  negative[11] = 0x80;
  write("tokenizer", "negative", joined({10, 0}, negative));
  const Bytes legacy = checkpoint(Format::kLegacy, {4, 6, 2, 2, 1, -5, 8}, 1, 1);
  write("tokenizer", "checkpoint", joined({200, 0}, legacy));
}

void write_vocabularies() {
  using namespace proofinfer_test;
  const Bytes all = {0, 0};
  size_t count = 0;
  write("tokenizer", "gguf_honest", joined(all, honest_file().bytes()));
  write("tokenizer", "gguf_padded", joined({44, 1}, honest_file().bytes()));
  write("tokenizer", "gguf_fewer", joined({5, 0}, honest_file().bytes()));
  for (const VocabularyLie &lie : vocabulary_lies()) {
    GgufFile file = honest_file();
    lie.tell(&file);
    write("tokenizer", "gguf_lie_" + std::to_string(count++), joined(all, file.bytes()));
  }
  RuleVocabulary words;
  words.pre = "llama-bpe";
  words.rules = {{"a", "b"}, {" ", "a"}};
  words.others = {{letters_of(" the")}, {"<x>", 0, kUserDefined}, {"\xE6\x97\xA5"}, {"\xC4"}, {"\xC4z"}, {"<s>", 0, kControl}, {""}};
  GgufFile file = rule_file(words);
  file.add("tokenizer.ggml.bos_token_id", 262u), file.add("tokenizer.ggml.eos_token_id", 262u);
  file.add("tokenizer.chat_template", "{{ messages }}");
  write("tokenizer", "gguf_words", joined(all, file.bytes()));
  const std::string space = "\xE2\x96\x81";
  write("tokenizer", "gguf_scored",
        joined(all, scored_file(scored_pieces({{space}, {"a", -1}, {space + "a", 1}, {"<x>", 0, kUserDefined}})).bytes()));
  GgufFile bare;
  bare.add("tokenizer.ggml.model", "llama");
  bare.add("tokenizer.ggml.tokens", std::vector<std::string>{space, "a", "aa"});
  write("tokenizer", "gguf_bare", joined(all, bare.bytes()));
  write("tokenizer", "gguf_bare_padded", joined({9, 0}, bare.bytes()));
}

// Models of every element type, and the lies that a directory can tell.
void write_gguf_models() {
  using namespace proofinfer_test;
  GgufToy toy;
  toy.n_heads = 2, toy.n_kv_heads = 1, toy.head_size = 4, toy.hidden_dim = 3, toy.n_layers = 1, toy.vocab_size = 6;
  for (const GgufElementType &element : kGgufElements) {
    toy.types = {element.name};
    toy.dim = element.columns == 1 ? 6 : uint32_t(element.columns);
    write("gguf", element.name, toy_gguf(toy, 1).bytes());
  }
  toy.types = {"q4_1", "f16", "q8_0"}, toy.dim = 32, toy.shared_classifier = false;
  toy.rope = {2.0f, 1.0f, 4.0f};
  const GgufFile mixed = toy_gguf(toy, 2);
  write("gguf", "mixed", mixed.bytes());
  GgufFile keys = mixed;
  keys.add_number("k.u8", kU8, uint8_t(1)), keys.add_number("k.i8", kI8, int8_t(-1)), keys.add_number("k.u16", kU16, uint16_t(1));
  keys.add_number("k.i16", kI16, int16_t(-1)), keys.add_number("k.i32", kI32, int32_t(-1)), keys.add_number("k.u64", kU64, uint64_t(1));
  keys.add_number("k.i64", kI64, int64_t(-1)), keys.add_number("k.f64", kF64, 0.1), keys.add("k.bool", true);
  keys.add("k.long", std::string(9000, 'x')), keys.add("k.texts", std::vector<std::string>(12, std::string(70, 'y')));
  keys.add("k.cut", std::string(8191, 'x') + "\xE2\x96\x81"), keys.add_array("k.i8s", kI8, std::vector<int8_t>{-1, 2, 3});
  keys.add_array("k.f64s", kF64, std::vector<double>(20, 0.5)), keys.add_array("k.bools", kBool, std::vector<uint8_t>{0, 1, 2});
  write("gguf", "keys", keys.bytes());
  Bytes whole = mixed.bytes();
  for (size_t cut : {size_t(3), size_t(20), size_t(40), whole.size() / 4, whole.size() / 2, whole.size() - 33})
    write("gguf", "cut_" + std::to_string(cut), Bytes(whole.begin(), whole.begin() + std::ptrdiff_t(cut)));
  write("gguf", "longer", joined(whole, {0}));
  size_t count = 0;
  for (const GgufLie &lie : gguf_lies()) {
    GgufFile file = mixed;
    lie.tell(&file);
    write("gguf", "lie_" + std::to_string(count++), file.bytes());
  }
}

// Models whose shape fits llama2.c's formats, and those that do not.
void write_gguf_conversions() {
  using namespace proofinfer_test;
  GgufToy toy;
  toy.dim = 8, toy.n_heads = 2, toy.n_kv_heads = 1, toy.head_size = 4, toy.hidden_dim = 6, toy.n_layers = 1, toy.vocab_size = 6;
  auto put = [](const std::string &name, uint8_t format, const GgufToy &model) {
    write("convert", name, joined({format, 0, 0, 0, 0}, toy_gguf(model, 3).bytes()));
  };
  for (uint8_t format : {uint8_t(0), uint8_t(1), uint8_t(2), uint8_t(3)})
    for (const char *type : {"f32", "f16", "bf16"}) {
      toy.types = {type}, toy.shared_classifier = format % 2 == 0;
      put(std::string("gguf_") + type + "_" + std::to_string(format), format, toy);
    }
  GgufToy other = toy;
  other.rope_base = 500000.0f;
  put("gguf_base", 1, other);
  other = toy, other.rope = {0.0f, 1.0f, 4.0f};
  put("gguf_factors", 1, other);
  other = toy, other.epsilon = 1e-6f;
  put("gguf_epsilon", 1, other);
  other = toy, other.head_size = 6;
  put("gguf_heads", 1, other);
  other = toy, other.types = {"q8_0"}, other.dim = 32, other.n_heads = 8;
  put("gguf_blocks", 1, other);
}

void write_texts() {
  const std::string texts[] = {"",
                               " ",
                               "the ab the",
                               "    Hello\n    Hello",
                               "don't I'LL 12 1234567 x\r\n\n  y <x><s>abab",
                               "This is \xF0\x9F\xA6\x99.cpp",
                               "<s></s><0x41>",
                               "\xC3\xA9\xC3",
                               "\xFF\xFE\x80",
                               std::string("a\0b", 3),
                               std::string(500, 'a'),
                               std::string(100, '\n'),
                               "\xE2\x96\x81x",
                               "\xED\xA0\x80 \xF4\x90\x80\x80"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    for (int vocabulary = 0; vocabulary < 6; vocabulary++)
      write("text", "text_" + std::to_string(i) + "_" + std::to_string(vocabulary),
            joined({uint8_t(vocabulary << 4 | (i & 15))}, text(texts[i])));
}

// Programs of the session target: random bytes with the useful operations in front, one for each format.
void write_programs() {
  for (uint32_t i = 0; i < 24; i++) {
    proofinfer_fuzz::Random random(i);
    Bytes program = {uint8_t(i)};
    const Bytes begin = {1, 0, 0, 1, 1, 1, 5, 1, 0, 2, 1, 9, 1, 0, 4, 4, 3, 0, 3, 4, 5, 6, 2, 1, 1, 0, 3, 2, 4, 5, 0, 0, 10, 0, 1, 1, 16};
    program = joined(program, begin);
    // A clone in another slot; both append, it goes back and on.
    const Bytes cloning = {1, 1, 250, 0, 0, 3, 1, 2, 7, 8, 2, 0, 3, 0, 1, 9, 2, 0, 6, 1, 1, 3, 1, 3, 4, 5, 6, 3, 0};
    if (i % 2) program = joined(program, cloning);
    for (uint32_t k = 0; k < 40 + 20 * i; k++) program.push_back(random.one_in(3) ? uint8_t(random.next()) : uint8_t(random.below(16)));
    write("session", "program_" + std::to_string(i), program);
  }
}

// States of the fixed checkpoints, some cut and some changed.
void write_states() {
  for (int format = 0; format < 3; format++) {
    const Bytes &file = proofinfer_fuzz::fixed_checkpoint(format);
    proofinfer_fuzz::Out<proofinfer_model> model;
    proofinfer_fuzz::Out<proofinfer_session> session;
    model.of(proofinfer_model_open_memory(file.data(), file.size(), nullptr, nullptr, &model.handle, nullptr));
    session.of(proofinfer_session_create(model.handle, nullptr, &session.handle, nullptr));
    const int32_t tokens[] = {1, 5, 9};
    for (size_t count = 0; count < 40; count += 3) {
      Bytes state(8192);
      size_t needed = 0;
      HOLDS(proofinfer_session_save(session.handle, state.data(), state.size(), &needed, nullptr) == PROOFINFER_OK);
      state.resize(needed);
      const std::string name = "good_" + std::to_string(format) + "_" + std::to_string(count);
      write("state", name, joined({uint8_t(format)}, state));
      write("state", name + "_other", joined({uint8_t(format + 1)}, state));
      write("state", name + "_cut", joined({uint8_t(format)}, Bytes(state.begin(), state.end() - 1 - std::ptrdiff_t(count))));
      state[needed / 2] ^= 1;
      write("state", name + "_changed", joined({uint8_t(format)}, state));
      HOLDS(proofinfer_session_append(session.handle, tokens, 3, int32_t(count / 3 % 2), nullptr, nullptr) == PROOFINFER_OK);
    }
    proofinfer_session_free(session.handle);
    proofinfer_model_free(model.handle);
  }
}

// Packed files of small shapes, as the library writes them.
void write_packed() {
  const Shape shapes[] = {{4, 6, 2, 2, 1, 5, 8}, {12, 8, 1, 6, 3, -17, 3}, {2, 2, 1, 1, 1, 1, 1}};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
    for (Format format : {Format::kLegacy, Format::kVersion2}) {
      const std::string name = "good_" + std::to_string(i) + "_" + std::to_string(int(format));
      const std::string from = g_folder + "/model/packed.tmp", to = g_folder + "/packed/" + name;
      write("packed", name, {});
      write("model", "packed.tmp", checkpoint(format, shapes[i], i, 2));
      HOLDS(proofinfer_convert(from.data(), from.size(), to.data(), to.size(), PROOFINFER_FORMAT_PACKED, 0, nullptr, nullptr) ==
            PROOFINFER_OK);
      std::remove(from.c_str());
      FILE *written = std::fopen(to.c_str(), "rb");
      Bytes file(1 << 16);
      HOLDS(written != nullptr);
      file.resize(std::fread(file.data(), 1, file.size(), written));
      std::fclose(written);
      write("packed", name + "_cut", Bytes(file.begin(), file.end() - 1));
      write("packed", name + "_longer", joined(file, {0}));
      for (size_t at : {0, 8, 12, 16, 24, 28, 36, 40, 44, 52, 56, 60, 64, 100, 4090}) {
        Bytes changed = file;
        changed[at] ^= 3;
        if (i == 0 || at == 8) write("packed", name + "_changed_" + std::to_string(at), changed);
        const uint64_t sum = proofinfer::checksum_of(changed.data(), 4088);
        for (size_t k = 0; k < 8; k++) changed[4088 + k] = uint8_t(sum >> 8 * k);
        write("packed", name + "_lies_" + std::to_string(at), changed);
      }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *, size_t) { return 0; }

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  g_folder = argv[1];
  mkdir(argv[1], 0777);
  write_good_checkpoints();
  write_bad_checkpoints();
  write_wrong_files();
  write_tokenizers();
  write_vocabularies();
  write_texts();
  write_programs();
  write_states();
  write_packed();
  write_gguf_models();
  write_gguf_conversions();
  return 0;
}
