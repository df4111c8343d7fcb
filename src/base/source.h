// The checked reader: untrusted bytes, from a file or from the caller's memory, are read only through it. Once open it is read
// from any number of threads.
#ifndef PROOFINFER_BASE_SOURCE_H
#define PROOFINFER_BASE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

namespace proofinfer {

// A file mapped read-only, for as long as the object lives. Any thread.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping();
  const unsigned char *data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  friend class Source;
  unsigned char *data_ = nullptr;
  size_t bytes_ = 0;
};

class Source {
 public:
  Source() = default;
  Source(const Source &) = delete;
  Source &operator=(const Source &) = delete;
  ~Source() { close(); }

  Status open_file(const char *path, size_t path_bytes, Failure *failure);
  void open_memory(const void *data, size_t data_bytes);
  void close();

  uint64_t size_bytes() const { return size_bytes_; }

  // Copies bytes [offset, offset + bytes) to `to`. `what` names them in the message. Out of range: kTruncated; a file that gives fewer bytes
  // than its size said: kIo.
  Status read(uint64_t offset, void *to, size_t bytes, const char *what, Failure *failure);

  bool is_file() const { return file_ != kNoFile; }
  // Maps the whole file. kIo where others may write to it: they could make it shorter, and the process that reads it would be killed.
  Status map(Mapping *mapping, Failure *failure);

 private:
  static constexpr int64_t kNoFile = -1;
  int64_t file_ = kNoFile;
  const unsigned char *data_ = nullptr;  // [size_bytes_] when there is no file
  uint64_t size_bytes_ = 0;
};

// Little-endian values from bytes that were already copied out of a Source.
inline uint32_t load_u32(const unsigned char *p) {
  return uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24;
}
inline uint64_t load_u64(const unsigned char *p) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t value;
  __builtin_memcpy(&value, p, sizeof(value));
  return value;
#else
  return load_u32(p) | uint64_t(load_u32(p + 4)) << 32;
#endif
}
inline int32_t load_i32(const unsigned char *p) { return static_cast<int32_t>(load_u32(p)); }
inline float load_f32(const unsigned char *p) {
  uint32_t bits = load_u32(p);
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// And to bytes.
inline void store_u32(unsigned char *p, uint32_t value) {
  for (int i = 0; i < 4; i++) p[i] = static_cast<unsigned char>(value >> 8 * i);
}
inline void store_u64(unsigned char *p, uint64_t value) {
  store_u32(p, static_cast<uint32_t>(value));
  store_u32(p + 4, static_cast<uint32_t>(value >> 32));
}

// Every NaN becomes 0x7fc00000: which one an operation gives differs between machines.
inline void store_f32(unsigned char *p, float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  store_u32(p, value != value ? 0x7fc00000u : bits);
}

// Turns `count` little-endian float32 read as raw bytes into this machine's order, in place. Nothing to do on little-endian machines.
inline void to_host_f32(float *values, size_t count) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  for (size_t i = 0; i < count; i++) values[i] = load_f32(reinterpret_cast<const unsigned char *>(values + i));
#else
  (void)values, (void)count;
#endif
}

// The same of 16-bit numbers.
inline void to_host_u16(uint16_t *values, size_t count) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  for (size_t i = 0; i < count; i++) values[i] = static_cast<uint16_t>(values[i] << 8 | values[i] >> 8);
#else
  (void)values, (void)count;
#endif
}

}  // namespace proofinfer

#endif
