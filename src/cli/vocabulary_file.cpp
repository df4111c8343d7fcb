#include "vocabulary_file.h"

#include <filesystem>
#include <fstream>

namespace proofinfer::cli {
namespace {

constexpr uint64_t kFileHeaderBytes = 4;   // u32: the longest piece, advisory
constexpr uint64_t kPieceHeaderBytes = 8;  // f32 score, i32 length

uint32_t little_endian(const unsigned char *bytes) {
  return bytes[0] | static_cast<uint32_t>(bytes[1]) << 8 | static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

}  // namespace

std::optional<int32_t> count_pieces(const std::string &path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return std::nullopt;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const std::streamoff size = file.tellg();
  if (size < static_cast<std::streamoff>(kFileHeaderBytes)) return std::nullopt;
  uint64_t left = static_cast<uint64_t>(size) - kFileHeaderBytes;
  file.seekg(static_cast<std::streamoff>(kFileHeaderBytes));
  int32_t count = 0;
  while (left > 0) {
    unsigned char header[kPieceHeaderBytes];
    if (left < kPieceHeaderBytes || !file.read(reinterpret_cast<char *>(header), kPieceHeaderBytes)) return std::nullopt;
    left -= kPieceHeaderBytes;
    const uint32_t length = little_endian(header + 4);
    // A negative length is one above 2^31 - 1 here, and `length <= left` keeps the subtraction and the position in the file.
    if (length > INT32_MAX || length > left || count == INT32_MAX) return std::nullopt;
    left -= length;
    // Short pieces are skipped inside the buffer: a seek would throw it away.
    file.ignore(length);
    if (!file) return std::nullopt;
    count++;
  }
  if (count == 0) return std::nullopt;
  return count;
}

bool is_gguf_file(const std::string &path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  char magic[4] = {0};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  return std::string(magic, sizeof(magic)) == "GGUF";
}

}  // namespace proofinfer::cli
