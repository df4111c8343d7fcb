// Where tests find their data: golden figures, models that are not in the tree, scratch files. Any thread.
#ifndef PROOFINFER_TESTS_SUPPORT_FILES_H
#define PROOFINFER_TESTS_SUPPORT_FILES_H

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace proofinfer_test {

// tests/data/<name>, and tests/data/golden/<name> parsed. A missing file fails the test and gives nothing.
std::string data_path(const std::string &name);
nlohmann::json golden(const std::string &name);

// The path of a model that another project made and that is therefore not in the tree: in the folder of the environment variable
// PROOFINFER_MODELS, else in the one chosen when the tests were configured.
std::optional<std::string> model_path(const std::string &name);

std::optional<std::vector<uint8_t>> read_file(const std::string &path);

// A file in the system's folder for temporary files, with these bytes, removed at the end.
class ScratchFile {
 public:
  explicit ScratchFile(const std::vector<uint8_t> &bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

std::vector<uint8_t> bytes_from_hex(const std::string &hex);

}  // namespace proofinfer_test

// Skips the test and says why, in the form that tests/tools/run_tests.py reads. Causes: tests/data/expected_skips.txt.
#define PROOFINFER_SKIP(cause) GTEST_SKIP() << "SKIPPED[" << (cause) << "]: "

// Declares `std::string variable`, the path of a model of others, or skips the test.
#define PROOFINFER_MODEL_OR_SKIP(variable, name)                                                         \
  std::optional<std::string> variable##_found = proofinfer_test::model_path(name);                       \
  if (!variable##_found) PROOFINFER_SKIP("real-models") << name << " is absent (set PROOFINFER_MODELS)"; \
  std::string variable = *variable##_found

// The same of the real GGUF model, which tests/tools/smollm2.sh fetches.
#define PROOFINFER_SMOLLM2_OR_SKIP(variable)                                                                     \
  const char *variable##_named = std::getenv("PROOFINFER_SMOLLM2");                                              \
  if (!variable##_named || !*variable##_named) PROOFINFER_SKIP("smollm2") << "PROOFINFER_SMOLLM2 names no file"; \
  std::string variable = variable##_named

#endif
