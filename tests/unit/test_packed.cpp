// Packed files: the same bits as the checkpoint they were made from, mapped or read; every truncation and changed header byte is refused.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/checksum.h"
#include "support/checkpoint.h"
#include "support/files.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

constexpr size_t kHeaderBytes = 4096;
constexpr Shape kShape = {12, 10, 2, 6, 3, 19, 80}, kOwnClassifier = {12, 10, 2, 6, 3, -19, 80};

// A checkpoint in every element type, its rows no multiple of 16.
struct Source {
  const char *name;
  std::vector<uint8_t> file;
};
std::vector<Source> sources() {
  return {{"legacy", legacy_checkpoint(kShape, 1)},
          {"own classifier", version1_checkpoint(kOwnClassifier, 2)},
          {"group 2", version2_checkpoint(kShape, 3, 2)},
          {"group 1", version2_checkpoint(kOwnClassifier, 4, 1)}};
}

std::vector<uint8_t> pack(const std::vector<uint8_t> &checkpoint) {
  const ScratchFile from(checkpoint), to({});
  Answer answer = answer_of(proofinfer_convert, from.path().data(), from.path().size(), to.path().data(), to.path().size(),
                            PROOFINFER_FORMAT_PACKED, 0, nullptr);
  EXPECT_TRUE(answer.ok()) << answer;
  return *read_file(to.path());
}

std::vector<float> all_logits(const Model &model) {
  Session session = make_session(model);
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < 70; i++) tokens.push_back(int32_t(i * 7 % 19));
  EXPECT_TRUE(append(session, tokens).ok());
  std::vector<float> all;
  for (size_t i = 0; i < tokens.size(); i++) {
    const std::vector<float> row = logits(session, i);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

Options with(std::string_view name, int64_t value) {
  Options options = make_options();
  set(options, name, value);
  return options;
}

Answer opening(const std::string &path, const proofinfer_options *options = nullptr) {
  Answer answer;
  Model model = open_model(path, options, &answer);
  EXPECT_EQ(model != nullptr, answer.ok());
  return answer;
}
Answer opening(const std::vector<uint8_t> &bytes) {
  Answer answer;
  Model model = open_model(bytes, nullptr, &answer);
  EXPECT_EQ(model != nullptr, answer.ok());
  return answer;
}

void put_checksum(std::vector<uint8_t> *file) {
  const uint64_t sum = proofinfer::checksum_of(file->data(), kHeaderBytes - 8);
  for (size_t i = 0; i < 8; i++) (*file)[kHeaderBytes - 8 + i] = uint8_t(sum >> 8 * i);
}

}  // namespace

TEST(Packed, mapped_or_read_it_gives_the_bits_of_the_checkpoint_on_every_kernel_set) {
  for (const Source &source : sources()) {
    SCOPED_TRACE(source.name);
    const std::vector<float> expected = all_logits(open_model(source.file));
    const std::vector<uint8_t> bytes = pack(source.file);
    const ScratchFile file(bytes);
    for (const std::string &isa : available_isas()) {
      Options options = make_options();
      set_text(options, "isa", isa);
      const Model mapped = open_model(file.path(), options.get());
      EXPECT_EQ(model_i64(mapped, PROOFINFER_MODEL_IS_MAPPED), 1);
      EXPECT_EQ(all_logits(mapped), expected) << isa;
      set(options, "map", 0);
      const Model read = open_model(file.path(), options.get());
      EXPECT_EQ(model_i64(read, PROOFINFER_MODEL_IS_MAPPED), 0);
      EXPECT_EQ(all_logits(read), expected) << isa;
    }
    EXPECT_EQ(all_logits(open_model(bytes)), expected);
    EXPECT_EQ(pack(source.file), bytes);
  }
}

TEST(Packed, its_properties_are_those_of_the_checkpoint_and_its_tensors_fill_it) {
  for (const Source &source : sources()) {
    const ScratchFile file(pack(source.file));
    const Model model = open_model(file.path()), before = open_model(source.file);
    for (int32_t property = PROOFINFER_MODEL_DIM; property <= PROOFINFER_MODEL_GROUP_SIZE; property++)
      EXPECT_EQ(model_i64(model, property), model_i64(before, property)) << property;
    EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_PARAMETER_COUNT), model_i64(before, PROOFINFER_MODEL_PARAMETER_COUNT));
    EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_WEIGHT_BYTES), model_i64(before, PROOFINFER_MODEL_WEIGHT_BYTES));
    EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_FILE_BYTES), int64_t(std::filesystem::file_size(file.path())));
    EXPECT_LT(model_i64(model, PROOFINFER_MODEL_MEMORY_BYTES), 65536);
    EXPECT_STREQ(proofinfer_model_get_text(model.get(), PROOFINFER_MODEL_FORMAT), "proofinfer packed");
    int64_t end = kHeaderBytes;
    const size_t count = proofinfer_model_tensor_count(model.get());
    EXPECT_EQ(count, 6u * 2 + 2 + (model_i64(model, PROOFINFER_MODEL_SHARED_CLASSIFIER) ? 0 : 1));
    for (size_t i = 0; i < count; i++) {
      int64_t offset = 0, bytes = 0;
      ASSERT_TRUE(answer_of(proofinfer_model_tensor_get_i64, model.get(), i, PROOFINFER_TENSOR_FILE_OFFSET, &offset).ok());
      ASSERT_TRUE(answer_of(proofinfer_model_tensor_get_i64, model.get(), i, PROOFINFER_TENSOR_FILE_BYTES, &bytes).ok());
      EXPECT_TRUE(i == 5 ? offset % 4096 == 0 && offset >= end && offset < end + 4096 : offset == end) << i;
      end = offset + bytes;
    }
    EXPECT_EQ(end, model_i64(model, PROOFINFER_MODEL_FILE_BYTES));
  }
}

TEST(Packed, its_tensors_are_named_for_the_matrices_that_they_hold) {
  std::vector<std::string> expected = {"layers.0.attention_norm", "layers.0.ffn_norm", "layers.1.attention_norm", "layers.1.ffn_norm",
                                       "final_norm"};
  for (const char *layer : {"layers.0.", "layers.1."})
    for (const char *matrix : {"qkv", "wo", "w13", "w2"}) expected.push_back(std::string(layer) + matrix);
  expected.insert(expected.end(), {"token_embedding", "classifier"});
  const Model model = open_model(pack(version1_checkpoint(kOwnClassifier, 2)));
  std::vector<std::string> names;
  for (size_t i = 0; i < proofinfer_model_tensor_count(model.get()); i++) {
    char name[64];
    size_t needed = 0;
    ASSERT_TRUE(answer_of(proofinfer_model_tensor_name, model.get(), i, name, sizeof(name), &needed).ok()) << i;
    names.emplace_back(name, needed);
  }
  EXPECT_EQ(names, expected);
}

TEST(Packed, a_state_moves_between_the_checkpoint_and_its_packed_file) {
  for (const Source &source : sources()) {
    const ScratchFile file(pack(source.file));
    const Model model = open_model(file.path()), before = open_model(source.file);
    Session session = make_session(before), other = make_session(model);
    ASSERT_TRUE(append(session, {1, 2, 3}).ok());
    std::vector<uint8_t> state(1 << 16);
    size_t needed = 0;
    ASSERT_TRUE(answer_of(proofinfer_session_save, session.get(), state.data(), state.size(), &needed).ok());
    Answer answer = answer_of(proofinfer_session_restore, other.get(), state.data(), needed);
    EXPECT_TRUE(answer.ok()) << answer;
  }
}

TEST(Packed, every_truncation_is_refused) {
  for (const Source &source : sources()) {
    const std::vector<uint8_t> bytes = pack(source.file);
    for (size_t length = 0; length < bytes.size(); length += length < kHeaderBytes + 64 || length + 64 > bytes.size() ? 1 : 61) {
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + std::ptrdiff_t(length));
      Answer answer = opening(cut);
      EXPECT_EQ(answer.status, length == 0 ? PROOFINFER_E_UNRECOGNIZED : PROOFINFER_E_TRUNCATED) << length << ": " << answer;
      if (length % 16 != 0) continue;
      EXPECT_FALSE(opening(ScratchFile(cut).path()).ok());
    }
    std::vector<uint8_t> longer = bytes;
    longer.push_back(0);
    EXPECT_EQ(opening(longer).status, PROOFINFER_E_FORMAT);
    EXPECT_EQ(opening(ScratchFile(longer).path()).status, PROOFINFER_E_FORMAT);
  }
}

TEST(Packed, every_changed_header_byte_is_refused) {
  const std::vector<uint8_t> bytes = pack(sources()[0].file);
  std::vector<uint8_t> changed = bytes;
  for (size_t at = 0; at < kHeaderBytes; at++)
    for (int flip : {0x01, 0x80, 0xFF}) {
      changed[at] ^= uint8_t(flip);
      EXPECT_FALSE(opening(changed).ok()) << at;
      changed[at] ^= uint8_t(flip);
    }
}

// With the checksum made right again. The fingerprint is a lie that only reading all weights finds out.
TEST(Packed, every_changed_header_byte_under_a_right_checksum_is_refused_or_harmless) {
  const Source source = sources()[2];
  const std::vector<uint8_t> bytes = pack(source.file);
  size_t opened = 0;
  for (size_t at = 8; at < kHeaderBytes - 8; at += at < 128 ? 1 : 97)
    for (int flip : {0x01, 0x02, 0x04, 0x80, 0xFF}) {
      SCOPED_TRACE(std::to_string(at) + " ^ " + std::to_string(flip));
      std::vector<uint8_t> changed = bytes;
      changed[at] ^= uint8_t(flip);
      put_checksum(&changed);
      EXPECT_FALSE(opening(changed).ok());
      const ScratchFile file(changed);
      // A fingerprint that lies, and a shape with the same sizes, are believed: then the numbers are others and every access stays inside.
      const bool may_open = (at >= 64 && at < 72) || (at >= 24 && at < 60);
      Answer answer;
      const Model model = open_model(file.path(), nullptr, &answer);
      EXPECT_TRUE(may_open || !answer.ok()) << answer;
      if (model) {
        Session session = make_session(model, with("context_length", 2).get());
        EXPECT_TRUE(append(session, {0, 1}).ok());
        opened++;
      }
      EXPECT_FALSE(opening(file.path(), with("verify", 1).get()).ok());
    }
  EXPECT_GE(opened, 8u * 5);
}

TEST(Packed, a_shape_whose_padded_rows_exceed_every_size_is_refused) {
  std::vector<uint8_t> bytes = pack(sources()[0].file);
  const uint32_t shape[] = {2, 0x7fffffffu, 1u << 26, 1, 1, 1, 1};  // under 2^63 bytes as it is, over it in rows of 16
  for (size_t i = 0; i < 7; i++)
    for (size_t k = 0; k < 4; k++) bytes[24 + 4 * i + k] = uint8_t(shape[i] >> 8 * k);
  put_checksum(&bytes);
  Answer answer = opening(bytes);
  EXPECT_EQ(answer.status, PROOFINFER_E_FORMAT) << answer;
  EXPECT_TRUE(answer.says("exceed 2^63")) << answer;
}

TEST(Packed, every_changed_byte_of_the_weights_is_found_by_verifying_and_is_only_a_number) {
  const Source source = sources()[3];
  const std::vector<uint8_t> bytes = pack(source.file);
  for (size_t at = kHeaderBytes; at < bytes.size(); at += 89) {
    std::vector<uint8_t> changed = bytes;
    changed[at] ^= 0xFF;
    const ScratchFile file(changed);
    const bool padding = at >= kHeaderBytes + 5 * 12 * 4 && at < 2 * kHeaderBytes;
    Answer answer = opening(file.path(), with("verify", 1).get());
    EXPECT_EQ(answer.ok(), padding) << at << answer;
    if (!padding) {
      EXPECT_TRUE(answer.says("its shape or its weights were changed")) << answer;
      EXPECT_EQ(opening(changed).status, PROOFINFER_E_FORMAT);
    }
    all_logits(open_model(file.path()));
  }
}

TEST(Packed, a_file_to_which_all_may_write_is_not_mapped) {
  const ScratchFile file(pack(sources()[0].file));
  ASSERT_EQ(chmod(file.path().c_str(), 0666), 0);
  Answer answer = opening(file.path());
  EXPECT_EQ(answer.status, PROOFINFER_E_IO) << answer;
  EXPECT_TRUE(answer.says("option map")) << answer;
  EXPECT_TRUE(opening(file.path(), with("map", 0).get()).ok());
  ASSERT_EQ(chmod(file.path().c_str(), 0664), 0);
  EXPECT_TRUE(opening(file.path()).ok());
}

namespace {

// Bytes of a file's mappings in this process, pages that n processes share counted an nth (proc(5), Pss).
uint64_t shared_bytes(const std::string &path) {
  std::ifstream maps("/proc/self/smaps");
  uint64_t bytes = 0;
  bool of_file = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' ')) of_file = line.find(path) != std::string::npos;
    if (of_file && line.compare(0, 4, "Pss:") == 0) bytes += std::strtoull(line.c_str() + 4, nullptr, 10) * 1024;
  }
  return bytes;
}

// Runs in a forked process: opens, reads every weight, and tells its part when all others have.
void share(const std::string &path, int ready, int go, int answer, int leave) {
  proofinfer_model *model = nullptr;
  proofinfer_options *options = nullptr;
  char byte = 0;
  uint64_t bytes = UINT64_MAX;
  if (proofinfer_options_create(&options, nullptr) == PROOFINFER_OK &&
      proofinfer_options_set_i64(options, PROOFINFER_TEXT("verify"), 1, nullptr) == PROOFINFER_OK &&
      proofinfer_model_open(path.data(), path.size(), options, nullptr, &model, nullptr) == PROOFINFER_OK && write(ready, &byte, 1) == 1 &&
      read(go, &byte, 1) == 1)
    bytes = shared_bytes(path);
  _exit(write(answer, &bytes, sizeof(bytes)) == sizeof(bytes) && read(leave, &byte, 1) == 1 ? 0 : 1);
}

}  // namespace

TEST(Packed, four_processes_share_one_copy_and_each_opens_it_within_50_ms) {
  constexpr int kProcesses = 4;
  const ScratchFile file(pack(legacy_checkpoint({256, 688, 4, 4, 4, 4000, 64}, 1)));
  const uint64_t file_bytes = std::filesystem::file_size(file.path());
  double quickest = 1e9;
  for (int i = 0; i < 5; i++) {
    const auto begin = std::chrono::steady_clock::now();
    const Model model = open_model(file.path());
    quickest = std::min(quickest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  EXPECT_LT(quickest, 0.050);
  int ready[2], go[2], answer[2], leave[2];
  ASSERT_TRUE(pipe(ready) == 0 && pipe(go) == 0 && pipe(answer) == 0 && pipe(leave) == 0);
  for (int i = 0; i < kProcesses; i++) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) share(file.path(), ready[1], go[0], answer[1], leave[0]);
  }
  close(ready[1]), close(answer[1]);
  char bytes[kProcesses] = {0};
  for (int i = 0; i < kProcesses; i++) ASSERT_EQ(read(ready[0], bytes, 1), 1);
  ASSERT_EQ(write(go[1], bytes, kProcesses), kProcesses);
  uint64_t together = 0;
  for (int i = 0; i < kProcesses; i++) {
    uint64_t part = 0;
    ASSERT_EQ(read(answer[0], &part, sizeof(part)), ssize_t(sizeof(part)));
    together += part;
  }
  ASSERT_EQ(write(leave[1], bytes, kProcesses), kProcesses);
  for (int i = 0, status = 0; i < kProcesses; i++) {
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  for (int end : {ready[0], go[0], go[1], answer[0], leave[0], leave[1]}) close(end);
  std::printf("%d processes hold %.3f of the file of %llu bytes; opening took %.3f ms\n", kProcesses, double(together) / double(file_bytes),
              (unsigned long long)file_bytes, quickest * 1e3);
  EXPECT_GE(together, file_bytes * 9 / 10);  // else nothing was measured
  EXPECT_LE(together, file_bytes * 12 / 10);
}

TEST(Packed, a_removed_or_replaced_file_goes_on_as_it_was_mapped) {
  const Source source = sources()[0];
  const std::vector<float> expected = all_logits(open_model(source.file));
  Model model;
  {
    const ScratchFile file(pack(source.file)), other(pack(sources()[1].file));
    model = open_model(file.path());
    ASSERT_EQ(rename(other.path().c_str(), file.path().c_str()), 0);
    EXPECT_EQ(all_logits(model), expected);
  }
  EXPECT_EQ(all_logits(model), expected);
}

TEST(Packed, wrong_conversions_are_refused_and_leave_no_file) {
  const ScratchFile checkpoint(sources()[0].file), packed(pack(sources()[0].file));
  const std::string to = packed.path() + ".new";
  auto convert = [&](const std::string &from, int32_t format, int32_t group_size) {
    return answer_of(proofinfer_convert, from.data(), from.size(), to.data(), to.size(), format, group_size, nullptr);
  };
  EXPECT_EQ(convert(checkpoint.path(), PROOFINFER_FORMAT_PACKED, 2).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(convert(checkpoint.path(), 4, 0).status, PROOFINFER_E_ARGUMENT);
  for (int32_t format : {PROOFINFER_FORMAT_LEGACY, PROOFINFER_FORMAT_VERSION_1, PROOFINFER_FORMAT_VERSION_2, PROOFINFER_FORMAT_PACKED})
    EXPECT_EQ(convert(packed.path(), format, 0).status, PROOFINFER_E_UNSUPPORTED) << format;
  EXPECT_FALSE(std::filesystem::exists(to));
}

}  // namespace proofinfer_test
