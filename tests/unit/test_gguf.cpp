// The GGUF directory: good files open whatever is in them, every bad one is refused with a code and a message that names the culprit.
#include "format/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/element_type.h"
#include "support/gguf.h"

namespace proofinfer_test {

namespace {

using proofinfer::Account;
using proofinfer::Failure;
using proofinfer::Gguf;
using proofinfer::GgufArray;
using proofinfer::GgufCursor;
using proofinfer::GgufText;
using proofinfer::GgufType;
using proofinfer::MemoryHooks;
using proofinfer::Need;
using proofinfer::Source;
using proofinfer::Status;

// An opened file, its bytes in an allocation of exactly their size: a sanitizer sees one byte too far.
struct Opened {
  Bytes bytes;
  Source source;
  Account account{MemoryHooks(), 0};
  Failure failure;
  Gguf gguf;
  Status status;

  explicit Opened(const Bytes &of) : bytes(of) {
    bytes.shrink_to_fit();
    source.open_memory(bytes.data(), bytes.size());
    status = gguf.open(&source, &account, &failure);
  }
  explicit Opened(const GgufFile &file) : Opened(file.bytes()) {}
};

#define EXPECT_REFUSED(expected_status, expected_message, ...)                 \
  do {                                                                         \
    Opened refused_{__VA_ARGS__};                                              \
    EXPECT_EQ(refused_.status, (expected_status)) << refused_.failure.message; \
    EXPECT_STREQ(refused_.failure.message, (expected_message));                \
  } while (false)

// One key of every type, and tensors of three types.
GgufFile sample() {
  GgufFile file;
  file.add("general.architecture", "llama");
  file.add_number("a.u8", kU8, uint8_t(200));
  file.add_number("a.i8", kI8, int8_t(-100));
  file.add_number("a.u16", kU16, uint16_t(60000));
  file.add_number("a.i16", kI16, int16_t(-30000));
  file.add("a.u32", 4000000000u);
  file.add_number("a.i32", kI32, int32_t(-2000000000));
  file.add("a.f32", 1.5f);
  file.add("a.bool", true);
  file.add_number("a.u64", kU64, ~uint64_t(0));
  file.add_number("a.i64", kI64, int64_t(-5));
  file.add_number("a.f64", kF64, 0.1);
  file.add("a.texts", std::vector<std::string>{"one", "", std::string("t\0o", 3)});
  file.add_array("a.floats", kF32, std::vector<float>{0.5f, -1.0f});
  file.add_array("a.none", kU64, std::vector<uint64_t>{});
  file.add_tensor("one", {3}, 0, Bytes(12, 1));
  file.add_tensor("two", {32, 3}, 8, Bytes(102, 2));
  file.add_tensor("three", {256, 2}, 14, Bytes(420, 3));
  return file;
}

template <typename T>
Status get(Status (Gguf::*getter)(const char *, Need, T *, Failure *) const, Opened *opened, const char *name, Need need, T *value) {
  return (opened->gguf.*getter)(name, need, value, &opened->failure);
}

}  // namespace

TEST(Gguf, every_type_of_value_is_read) {
  for (uint32_t version : {2u, 3u}) {
    GgufFile file = sample();
    file.version = version;
    Opened opened(file);
    ASSERT_EQ(opened.status, proofinfer::kOk) << opened.failure.message;
    EXPECT_EQ(opened.gguf.version(), version);
    ASSERT_EQ(opened.gguf.key_count(), file.keys.size());
    for (size_t i = 0; i < file.keys.size(); i++) {
      const proofinfer::GgufKey &key = opened.gguf.key(i);
      EXPECT_EQ(std::string(opened.gguf.name(key), key.name_bytes), file.keys[i].name);
      EXPECT_EQ(uint32_t(key.type), file.keys[i].type);
      EXPECT_EQ(opened.gguf.find(file.keys[i].name.c_str()), &key);
    }
    struct Number {
      const char *name;
      int64_t value;
    };
    for (const Number &n : {Number{"a.u8", 200}, Number{"a.i8", -100}, Number{"a.u16", 60000}, Number{"a.i16", -30000},
                            Number{"a.u32", 4000000000}, Number{"a.i32", -2000000000}, Number{"a.u64", -1}, Number{"a.i64", -5}})
      EXPECT_EQ(int64_t(opened.gguf.find(n.name)->value), n.value) << n.name;
    uint64_t number = 7;
    float real = 7.0f;
    bool flag = false;
    for (const Number &n : {Number{"a.u8", 200}, Number{"a.u16", 60000}, Number{"a.u32", 4000000000}, Number{"a.u64", -1}}) {
      EXPECT_EQ(get(&Gguf::get_u64, &opened, n.name, Need::kRequired, &number), proofinfer::kOk);
      EXPECT_EQ(int64_t(number), n.value) << n.name;
    }
    EXPECT_EQ(get(&Gguf::get_f32, &opened, "a.f32", Need::kRequired, &real), proofinfer::kOk);
    EXPECT_EQ(real, 1.5f);
    EXPECT_EQ(get(&Gguf::get_bool, &opened, "a.bool", Need::kRequired, &flag), proofinfer::kOk);
    EXPECT_TRUE(flag);
  }
}

TEST(Gguf, texts_and_arrays_are_walked_in_the_file) {
  Opened opened(sample());
  ASSERT_EQ(opened.status, proofinfer::kOk) << opened.failure.message;
  GgufText text;
  ASSERT_EQ(get(&Gguf::get_text, &opened, "general.architecture", Need::kRequired, &text), proofinfer::kOk);
  EXPECT_EQ(std::string(opened.bytes.begin() + int64_t(text.offset), opened.bytes.begin() + int64_t(text.offset + text.bytes)), "llama");
  GgufArray array;
  ASSERT_EQ(opened.gguf.get_array("a.texts", Need::kRequired, GgufType::kText, &array, &opened.failure), proofinfer::kOk);
  ASSERT_EQ(array.count, 3u);
  GgufCursor cursor(&opened.source, array.offset);
  std::vector<std::string> found;
  for (uint64_t i = 0; i < array.count; i++) {
    uint64_t bytes = 0;
    ASSERT_EQ(cursor.read_text_bytes(&bytes, "text", &opened.failure), proofinfer::kOk);
    std::string piece(bytes, '?');
    ASSERT_EQ(cursor.read(piece.data(), bytes, "text", &opened.failure), proofinfer::kOk);
    found.push_back(piece);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"one", "", std::string("t\0o", 3)}));
  ASSERT_EQ(opened.gguf.get_array("a.floats", Need::kRequired, GgufType::kF32, &array, &opened.failure), proofinfer::kOk);
  EXPECT_EQ(array.count, 2u);
  ASSERT_EQ(opened.gguf.get_array("a.none", Need::kRequired, GgufType::kU64, &array, &opened.failure), proofinfer::kOk);
  EXPECT_EQ(array.count, 0u);
}

TEST(Gguf, a_cursor_neither_reads_nor_skips_beyond_the_end) {
  Opened opened(sample());
  GgufCursor cursor(&opened.source, opened.bytes.size() - 5);
  EXPECT_EQ(cursor.skip(6, "six bytes", &opened.failure), proofinfer::kTruncated);
  EXPECT_EQ(opened.failure.message, "GGUF: six bytes at offset " + std::to_string(opened.bytes.size() - 5) + " needs 6 bytes; 5 are left");
  uint8_t bytes[6];
  EXPECT_EQ(cursor.read(bytes, 6, "six bytes", &opened.failure), proofinfer::kTruncated);
  EXPECT_EQ(cursor.skip(2, "two bytes", &opened.failure), proofinfer::kOk);
  EXPECT_EQ(cursor.left(), 3u);
}

TEST(Gguf, tensors_are_found_with_their_place) {
  GgufFile file = sample();
  Opened opened(file);
  ASSERT_EQ(opened.status, proofinfer::kOk) << opened.failure.message;
  ASSERT_EQ(opened.gguf.tensor_count(), 3u);
  for (const GgufFile::Tensor &tensor : file.tensors) {
    const proofinfer::GgufTensor *found = opened.gguf.find_tensor(tensor.name.c_str());
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->columns, tensor.dims[0]);
    EXPECT_EQ(found->rows, tensor.dims.size() > 1 ? tensor.dims[1] : 1);
    EXPECT_EQ(found->is_vector, tensor.dims.size() == 1);
    EXPECT_EQ(found->type, tensor.type);
    ASSERT_EQ(found->bytes, tensor.data.size());
    EXPECT_EQ(Bytes(opened.bytes.begin() + int64_t(found->offset), opened.bytes.begin() + int64_t(found->offset + found->bytes)),
              tensor.data);
  }
  EXPECT_EQ(opened.gguf.find_tensor("on"), nullptr);
  EXPECT_EQ(opened.gguf.find_tensor("onee"), nullptr);
  EXPECT_EQ(opened.gguf.find(""), nullptr);
}

TEST(Gguf, good_files_of_every_kind_open) {
  GgufFile file;
  EXPECT_EQ(Opened(file).status, proofinfer::kOk);  // no keys, no tensors
  file.add("a", 1u);
  EXPECT_EQ(Opened(file).status, proofinfer::kOk);
  for (size_t extra = 1; extra <= 31; extra++) {  // filled up to the alignment, and less
    Bytes bytes = file.bytes();
    bytes.resize(bytes.size() + extra);
    bool filling = bytes.size() <= (file.bytes().size() + 31) / 32 * 32;
    EXPECT_EQ(Opened(bytes).status, filling ? proofinfer::kOk : proofinfer::kFormat) << extra;
  }
  file = sample();
  file.fill_last = false;
  EXPECT_EQ(Opened(file).status, proofinfer::kOk);
  for (uint32_t alignment : {8u, 64u, 65536u}) {
    file = sample();
    file.alignment = alignment;
    file.add("general.alignment", alignment);
    Opened opened(file);
    EXPECT_EQ(opened.status, proofinfer::kOk) << opened.failure.message;
    EXPECT_EQ(opened.gguf.alignment(), alignment);
  }
  file = sample();
  file.add(std::string(65535, 'k'), 1u);
  std::swap(file.tensors[0], file.tensors[2]);  // in another order than their names' or data's
  EXPECT_EQ(Opened(file).status, proofinfer::kOk);
  // Tensors need not lie in the order of their entries.
  file = sample();
  file.tensors[0].offset = 32 + 128 + 448;
  file.tensors[1].offset = 0, file.tensors[2].offset = 128;
  Bytes bytes = file.bytes();
  bytes.resize(bytes.size() + 32);
  Opened moved(bytes);
  EXPECT_EQ(moved.status, proofinfer::kOk) << moved.failure.message;
}

TEST(Gguf, every_element_type_has_its_block) {
  const std::vector<std::tuple<uint32_t, uint64_t, size_t>> types = {{0, 1, 4},      {1, 1, 2},      {2, 32, 18}, {3, 32, 20},
                                                                     {6, 32, 22},    {7, 32, 24},    {8, 32, 34}, {12, 256, 144},
                                                                     {13, 256, 176}, {14, 256, 210}, {30, 1, 2}};
  for (auto [type, columns, size] : types) {
    GgufFile file;
    file.add_tensor("t", {2 * columns, 3}, type, Bytes(6 * size));
    Opened opened(file);
    ASSERT_EQ(opened.status, proofinfer::kOk) << type << ": " << opened.failure.message;
    EXPECT_EQ(opened.gguf.tensor(0).bytes, 6 * size) << type;
  }
}

TEST(Gguf, blocks_are_what_the_kernels_take) {
  size_t compared = 0;
  for (size_t i = 0; i < proofinfer::kElementTypeCount; i++) {
    const proofinfer::ElementType type = proofinfer::ElementType(i);
    for (uint32_t number = 0; number < 64; number++) {
      const proofinfer::GgufElement *element = proofinfer::gguf_element(number);
      if (!element || std::string(element->name) != proofinfer::element_name(type)) continue;
      EXPECT_EQ(element->block_columns, proofinfer::element_block_columns(type)) << element->name;
      EXPECT_EQ(element->block_bytes, proofinfer::element_block_bytes(type)) << element->name;
      compared++;
    }
  }
  EXPECT_EQ(compared, proofinfer::kElementTypeCount - 1);  // no GGUF file has kQ8Groups
}

TEST(Gguf, getters_refuse_other_types_and_say_which) {
  Opened opened(sample());
  ASSERT_EQ(opened.status, proofinfer::kOk) << opened.failure.message;
  auto at = [&opened](const char *name) { return std::to_string(opened.gguf.find(name)->offset); };
  uint64_t number = 7;
  float real = 7.0f;
  bool flag = false;
  GgufText text;
  GgufArray array;
  auto refused = [&opened](Status status, const std::string &message) {
    EXPECT_EQ(status, proofinfer::kFormat);
    EXPECT_EQ(opened.failure.message, message);
  };
  refused(get(&Gguf::get_u64, &opened, "a.f32", Need::kOptional, &number),
          "GGUF: key a.f32 at offset " + at("a.f32") + " is f32; expected an unsigned integer");
  refused(get(&Gguf::get_u64, &opened, "a.i8", Need::kRequired, &number),
          "GGUF: key a.i8 at offset " + at("a.i8") + " is -100; expected an unsigned integer");
  refused(get(&Gguf::get_u64, &opened, "b", Need::kRequired, &number), "GGUF: key b is missing; expected an unsigned integer");
  refused(get(&Gguf::get_f32, &opened, "a.f64", Need::kRequired, &real),
          "GGUF: key a.f64 at offset " + at("a.f64") + " is f64; expected f32");
  refused(get(&Gguf::get_f32, &opened, "b", Need::kRequired, &real), "GGUF: key b is missing; expected one of type f32");
  refused(get(&Gguf::get_bool, &opened, "a.u8", Need::kRequired, &flag),
          "GGUF: key a.u8 at offset " + at("a.u8") + " is u8; expected bool");
  refused(get(&Gguf::get_text, &opened, "a.texts", Need::kRequired, &text),
          "GGUF: key a.texts at offset " + at("a.texts") + " is array; expected string");
  refused(opened.gguf.get_array("a.u32", Need::kRequired, GgufType::kF32, &array, &opened.failure),
          "GGUF: key a.u32 at offset " + at("a.u32") + " is u32; expected array");
  refused(opened.gguf.get_array("a.floats", Need::kRequired, GgufType::kText, &array, &opened.failure),
          "GGUF: key a.floats at offset " + at("a.floats") + " is an array of f32; expected an array of string");
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(get(&Gguf::get_u64, &opened, "b", Need::kOptional, &number), proofinfer::kOk);
  EXPECT_EQ(get(&Gguf::get_f32, &opened, "b", Need::kOptional, &real), proofinfer::kOk);
  EXPECT_EQ(get(&Gguf::get_bool, &opened, "b", Need::kOptional, &flag), proofinfer::kOk);
  EXPECT_EQ(get(&Gguf::get_text, &opened, "b", Need::kOptional, &text), proofinfer::kOk);
  EXPECT_EQ(opened.gguf.get_array("b", Need::kOptional, GgufType::kF32, &array, &opened.failure), proofinfer::kOk);
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(real, 7.0f);
}

// FAULTS 10.
TEST(Gguf, other_files_are_named) {
  EXPECT_REFUSED(proofinfer::kUnrecognized, "GGUF: this is an empty file; expected a file that begins with \"GGUF\"", Bytes());
  EXPECT_REFUSED(proofinfer::kUnrecognized, "GGUF: this is no GGUF file; expected a file that begins with \"GGUF\"", Bytes(40, 0));
  EXPECT_REFUSED(proofinfer::kUnrecognized,
                 "GGUF: this is a ZIP archive (PyTorch checkpoints are); expected a file that begins with \"GGUF\"",
                 (Bytes{'P', 'K', 3, 4, 0, 0, 0, 0}));
  GgufFile file;
  for (uint32_t version : {0u, 1u, 4u, 4000000000u}) {
    file.version = version;
    EXPECT_REFUSED(proofinfer::kUnsupported, ("GGUF: version at offset 4 is " + std::to_string(version) + "; expected 2 or 3").c_str(),
                   file);
  }
  file.version = 3u << 24;
  EXPECT_REFUSED(proofinfer::kUnsupported, "GGUF: this is a big-endian file (version 3 at offset 4); expected a little-endian one", file);
}

// FAULTS 4: cut anywhere, it is truncated, and the message has an offset or a tensor's name.
TEST(Gguf, a_file_cut_anywhere_is_refused) {
  GgufFile file = sample();
  file.fill_last = false;
  Bytes whole = file.bytes();
  for (size_t size = 1; size < whole.size(); size++) {
    Opened cut(Bytes(whole.begin(), whole.begin() + int64_t(size)));
    if (size < 4) {
      EXPECT_EQ(cut.status, proofinfer::kUnrecognized) << size;
      continue;
    }
    EXPECT_EQ(cut.status, proofinfer::kTruncated) << size << ": " << cut.failure.message;
    EXPECT_NE(std::string(cut.failure.message).find("offset"), std::string::npos) << cut.failure.message;
  }
  Opened last(Bytes(whole.begin(), whole.end() - 1));
  EXPECT_STREQ(last.failure.message, "GGUF: tensor three, at offset 160 of the data, needs 420 bytes; 419 are there");
}

TEST(Gguf, trailing_bytes_are_refused) {
  GgufFile file = sample();
  Bytes bytes = file.bytes();
  bytes.push_back(0);
  Opened opened(bytes);
  EXPECT_EQ(opened.status, proofinfer::kFormat);
  size_t end = file.bytes().size(), last = end - 448 + 420;
  EXPECT_EQ(opened.failure.message, "GGUF: 29 bytes follow the last tensor, which ends at offset " + std::to_string(last) +
                                        "; expected nothing but a filling up to " + std::to_string(end));
  GgufFile keys_only;
  bytes = keys_only.bytes();
  bytes.resize(33);
  EXPECT_REFUSED(proofinfer::kFormat,
                 "GGUF: 9 bytes follow the last entry, which ends at offset 24; expected nothing but a filling up to 32", bytes);
}

// FAULTS 2: 24 bytes that ask for gigabytes, and counts that would wrap.
TEST(Gguf, counts_are_held_to_the_bytes_that_are_left) {
  for (uint64_t count : {uint64_t(1), uint64_t(1) << 32, uint64_t(1) << 61, ~uint64_t(0)}) {
    GgufFile file;
    file.tensor_count = count;
    std::string number = std::to_string(count);
    EXPECT_REFUSED(proofinfer::kTruncated,
                   ("GGUF: the number of tensors at offset 8 is " + number + ", at least 33 bytes each; 0 bytes are left").c_str(), file);
    file = GgufFile();
    file.key_count = count;
    EXPECT_REFUSED(proofinfer::kTruncated,
                   ("GGUF: the number of keys at offset 16 is " + number + ", at least 14 bytes each; 0 bytes are left").c_str(), file);
    for (uint32_t type : {uint32_t(kU8), uint32_t(kString), uint32_t(kF64)}) {
      file = GgufFile();
      Bytes value;
      put(&value, type), put(&value, count);
      file.keys.push_back({"a", kArray, value});
      uint64_t each = type == kU8 ? 1 : 8;
      EXPECT_REFUSED(proofinfer::kTruncated,
                     ("GGUF: the number of elements in the array of key a at offset 41 is " + number + ", at least " +
                      std::to_string(each) + " bytes each; 0 bytes are left")
                         .c_str(),
                     file);
      file.keys[0].type = kString;
      file.keys[0].value = Bytes();
      put(&file.keys[0].value, count);
      EXPECT_REFUSED(proofinfer::kTruncated, ("GGUF: key a at offset 45 needs " + number + " bytes; 0 are left").c_str(), file);
    }
  }
}

TEST(Gguf, more_entries_than_the_limit_are_unsupported) {
  Bytes bytes = GgufFile().bytes();
  uint64_t count = Gguf::kMaxEntries + 1;
  for (int i = 0; i < 8; i++) bytes[16 + size_t(i)] = uint8_t(count >> 8 * i);
  bytes.resize(24 + 14 * count);
  EXPECT_REFUSED(proofinfer::kUnsupported, "GGUF: 0 tensors and 1048577 keys, at offsets 8 and 16; expected at most 1048576 of each",
                 bytes);
  std::swap_ranges(bytes.begin() + 8, bytes.begin() + 16, bytes.begin() + 16);
  bytes.resize(24 + 33 * count);
  EXPECT_REFUSED(proofinfer::kUnsupported, "GGUF: 1048577 tensors and 0 keys, at offsets 8 and 16; expected at most 1048576 of each",
                 bytes);
}

// FAULTS 8.
TEST(Gguf, names_are_checked) {
  GgufFile file;
  file.add("", 1u);
  file.add("b", 1u);
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: the name of key 0 at offset 24 has 0 bytes; expected 1 to 65535", file);
  file = GgufFile();
  file.add(std::string(65536, 'k'), 1u);
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: the name of key 0 at offset 24 has 65536 bytes; expected 1 to 65535", file);
  file = GgufFile();
  file.add_tensor("", {8}, 0, Bytes(32));
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: the name of tensor 0 at offset 24 has 0 bytes; expected 1 to 65535", file);
}

// FAULTS 9.
TEST(Gguf, duplicates_are_refused) {
  GgufFile file;
  file.add("b", 1u);
  file.add("a", 1u);
  file.add("b", 2u);
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: key b occurs twice, at offsets 37 and 71; expected once", file);
  file = GgufFile();
  for (const char *name : {"x", "y", "x"}) file.add_tensor(name, {8}, 0, Bytes(32));
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: tensor x occurs twice, at offsets 24 and 90; expected once", file);
}

TEST(Gguf, value_types_are_checked) {
  GgufFile file;
  file.keys.push_back({"a", 13, Bytes(8)});
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: key a has the value type 13 at offset 33; expected 0 to 12", file);
  for (uint32_t type : {13u, ~0u}) {
    file = GgufFile();
    Bytes value;
    put(&value, type), put(&value, uint64_t(0));
    file.keys.push_back({"a", kArray, value});
    EXPECT_REFUSED(proofinfer::kFormat,
                   ("GGUF: the array of key a has the element type " + std::to_string(type) + " at offset 37; expected 0 to 12").c_str(),
                   file);
  }
  file = GgufFile();
  file.add_number("a", kBool, uint8_t(2));
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: key a at offset 37 is a bool of value 2; expected 0 or 1", file);
}

// FAULTS 7: an array of arrays, and one as deep as the file is long.
void expect_arrays_refused(int levels) {
  GgufFile file;
  Bytes value;
  for (int i = 0; i < levels; i++) put(&value, uint32_t(kArray)), put(&value, uint64_t(1));
  file.keys.push_back({"a", kArray, value});
  EXPECT_REFUSED(proofinfer::kUnsupported, "GGUF: the array of key a at offset 37 is one of arrays; expected numbers, bools or strings",
                 file);
}
TEST(Gguf, arrays_of_arrays_are_refused) { expect_arrays_refused(2); }
TEST(Gguf, nested_arrays_are_refused_without_recursion) { expect_arrays_refused(1000000); }

// FAULTS 4.
TEST(Gguf, alignments_that_cannot_be_are_refused) {
  for (uint32_t alignment : {0u, 1u, 4u, 12u, 33u, 131072u, 0x80000000u}) {
    GgufFile file;
    file.add("general.alignment", alignment);
    EXPECT_REFUSED(
        proofinfer::kFormat,
        ("GGUF: key general.alignment at offset 53 is " + std::to_string(alignment) + "; expected a power of two from 8 to 65536").c_str(),
        file);
  }
  GgufFile file;
  file.add("general.alignment", "32");
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: key general.alignment at offset 61 is string; expected an unsigned integer", file);
}

// FAULTS 1, 7.
TEST(Gguf, dimensions_are_checked) {
  auto refused = [](std::vector<uint64_t> dims, uint32_t type, Status status, const std::string &message) {
    GgufFile file;
    file.add_tensor("t", std::move(dims), type, Bytes(64));
    EXPECT_REFUSED(status, message.c_str(), file);
  };
  refused({}, 0, proofinfer::kFormat, "GGUF: tensor t has 0 dimensions, at offset 33; expected 1 to 4");
  refused({1, 1, 1, 1, 1}, 0, proofinfer::kFormat, "GGUF: tensor t has 5 dimensions, at offset 33; expected 1 to 4");
  refused({8, 0}, 0, proofinfer::kFormat, "GGUF: dimension 1 of tensor t, at offset 45, is 0; expected 1 to 9223372036854775807");
  refused({~uint64_t(0)}, 0, proofinfer::kFormat,
          "GGUF: dimension 0 of tensor t, at offset 37, is 18446744073709551615; expected 1 to 9223372036854775807");
  refused({2, 2, 2}, 0, proofinfer::kUnsupported, "GGUF: tensor t has the dimensions 2 x 2 x 2 x 1; expected one or two");
  refused({2, 2, 1, 2}, 0, proofinfer::kUnsupported, "GGUF: tensor t has the dimensions 2 x 2 x 1 x 2; expected one or two");
  refused({33}, 2, proofinfer::kFormat, "GGUF: tensor t has 33 columns of the type Q4_0; expected a multiple of 32");
  refused({32, 2}, 12, proofinfer::kFormat, "GGUF: tensor t has 32 columns of the type Q4_K; expected a multiple of 256");
  for (auto [columns, rows] : std::vector<std::pair<uint64_t, uint64_t>>{
           {uint64_t(1) << 33, uint64_t(1) << 33}, {uint64_t(1) << 32, uint64_t(1) << 32}, {uint64_t(1) << 62, 1}, {1, uint64_t(1) << 62}})
    refused({columns, rows}, 0, proofinfer::kFormat,
            "GGUF: tensor t has " + std::to_string(columns) + " x " + std::to_string(rows) +
                " weights of the type F32, which are more bytes than a file can have");
  refused({(uint64_t(1) << 42) + 1}, 0, proofinfer::kTruncated,
          "GGUF: tensor t, at offset 0 of the data, needs 17592186044420 bytes; 64 are there");
}

TEST(Gguf, element_types_that_are_not_read_are_named) {
  for (auto [type, name] : std::vector<std::pair<uint32_t, std::string>>{
           {10, "Q2_K"}, {23, "IQ4_XS"}, {39, "MXFP4"}, {4, "of no known meaning"}, {~0u, "of no known meaning"}}) {
    GgufFile file;
    file.add_tensor("t", {256}, type, Bytes(1024));
    EXPECT_REFUSED(proofinfer::kUnsupported,
                   ("GGUF: tensor t has the element type " + std::to_string(type) + " (" + name +
                    "), at offset 45; expected one of F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K")
                       .c_str(),
                   file);
  }
}

// FAULTS 1, 3, 4.
TEST(Gguf, offsets_are_checked) {
  auto file_with = [](uint64_t offset) {
    GgufFile file;
    file.add_tensor("one", {8}, 0, Bytes(32));
    file.add_tensor("two", {9}, 0, Bytes(36));
    file.tensors[1].offset = offset;
    return file;
  };
  EXPECT_EQ(Opened(file_with(32)).status, proofinfer::kOk);
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: tensor two has the offset 33 in the data; expected a multiple of the alignment, which is 32",
                 file_with(33));
  EXPECT_REFUSED(proofinfer::kFormat, "GGUF: tensor two begins at offset 96, where tensor one is up to offset 128; expected apart",
                 file_with(0));
  EXPECT_REFUSED(proofinfer::kTruncated, "GGUF: tensor two, at offset 96 of the data, needs 36 bytes; 0 are there", file_with(96));
  EXPECT_REFUSED(proofinfer::kTruncated, "GGUF: tensor two, at offset 64 of the data, needs 36 bytes; 32 are there", file_with(64));
  for (uint64_t offset : {~uint64_t(0) - 31, uint64_t(1) << 63, (uint64_t(1) << 63) - 32})
    EXPECT_REFUSED(proofinfer::kTruncated,
                   ("GGUF: tensor two, at offset " + std::to_string(offset) + " of the data, needs 36 bytes; 0 are there").c_str(),
                   file_with(offset));
}

// FAULTS 14: the greatest number of keys, long common beginnings of names, and little memory for it.
TEST(Gguf, large_directories_are_near_linear) {
  auto seconds = [](const Bytes &bytes) {
    auto begin = std::chrono::steady_clock::now();
    Opened opened(bytes);
    EXPECT_EQ(opened.status, proofinfer::kOk) << opened.failure.message;
    EXPECT_LE(opened.account.used_bytes(), 10 * bytes.size());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  GgufFile many;
  for (uint32_t i = 0; i < 300000; i++) many.add_number("k" + std::to_string(i * 7919u), kU8, uint8_t(1));
  GgufFile alike;
  for (uint32_t i = 0; i < 300; i++) alike.add(std::string(65000, 'k') + std::to_string(i), 1u);
  // Generous: a machine under load, a sanitizer. Comparing pairwise, or shifting entries to where they belong, takes minutes.
  EXPECT_LT(seconds(many.bytes()), 20.0);
  EXPECT_LT(seconds(alike.bytes()), 20.0);
}

TEST(Gguf, memory_limits_are_failures) {
  Bytes bytes = sample().bytes();
  size_t refused = 0;
  for (uint64_t limit = 1; limit < 100000; limit += 16) {
    Source source;
    source.open_memory(bytes.data(), bytes.size());
    Account account(MemoryHooks(), limit);
    Failure failure;
    Gguf gguf;
    Status status = gguf.open(&source, &account, &failure);
    if (status == proofinfer::kOk) break;
    EXPECT_EQ(status, proofinfer::kLimit) << failure.message;
    refused++;
  }
  EXPECT_GT(refused, 5u);
  EXPECT_LT(refused, 6000u);
}

}  // namespace proofinfer_test
