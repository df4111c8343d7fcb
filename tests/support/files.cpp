#include "support/files.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace proofinfer_test {

std::string data_path(const std::string &name) { return std::string(PROOFINFER_TEST_DATA) + "/" + name; }

nlohmann::json golden(const std::string &name) {
  std::ifstream file(data_path("golden/" + name));
  EXPECT_TRUE(file.good()) << data_path("golden/" + name) << " cannot be read";
  return file.good() ? nlohmann::json::parse(file) : nlohmann::json();
}

std::optional<std::string> model_path(const std::string &name) {
  const char *chosen = std::getenv("PROOFINFER_MODELS");
  std::string path = std::string(chosen ? chosen : PROOFINFER_DEFAULT_MODELS) + "/" + name;
  if (access(path.c_str(), R_OK) != 0) return std::nullopt;
  return path;
}

std::optional<std::vector<uint8_t>> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.good()) return std::nullopt;
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

ScratchFile::ScratchFile(const std::vector<uint8_t> &bytes) {
  const char *folder = std::getenv("TMPDIR");
  path_ = std::string(folder ? folder : "/tmp") + "/proofinfer-test-XXXXXX";
  int descriptor = mkstemp(path_.data());
  EXPECT_GE(descriptor, 0) << path_;
  close(descriptor);
  std::ofstream file(path_, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  EXPECT_TRUE(file.good()) << path_;
}

ScratchFile::~ScratchFile() { unlink(path_.c_str()); }

std::vector<uint8_t> bytes_from_hex(const std::string &hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(uint8_t(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace proofinfer_test
