#include "base/source.h"

#include <string.h>

#include "base/os.h"

namespace proofinfer {

Mapping::~Mapping() {
  if (data_) os_unmap_file(data_, bytes_);
}

Status Source::map(Mapping *mapping, Failure *failure) {
  if (os_others_may_write(file_))
    return fail(
        failure, kIo,
        "all users may write to the packed file: cutting it while it is mapped would kill this process; take that permission away, or have "
        "it read instead (option map 0)");
  int error_number = 0;
  size_t bytes = static_cast<size_t>(size_bytes_);
  void *memory = os_map_file(file_, bytes, &error_number);
  if (!memory && error_number == 0) return fail(failure, kMemory, "the packed file cannot be mapped: no room for its %zu bytes", bytes);
  if (!memory) {
    char text[128];
    os_error_text(error_number, text, sizeof(text));
    return fail(failure, kIo, "the packed file cannot be mapped: %s", text);
  }
  mapping->data_ = static_cast<unsigned char *>(memory);
  mapping->bytes_ = bytes;
  return kOk;
}

Status Source::open_file(const char *path, size_t path_bytes, Failure *failure) {
  close();
  return os_open_file(path, path_bytes, &file_, &size_bytes_, failure);
}

void Source::open_memory(const void *data, size_t data_bytes) {
  close();
  data_ = static_cast<const unsigned char *>(data);
  size_bytes_ = data_bytes;
}

void Source::close() {
  if (file_ != kNoFile) os_close_file(file_);
  file_ = kNoFile;
  data_ = nullptr;
  size_bytes_ = 0;
}

Status Source::read(uint64_t offset, void *to, size_t bytes, const char *what, Failure *failure) {
  if (offset > size_bytes_ || bytes > size_bytes_ - offset)
    return fail(failure, kTruncated, "%s: bytes %llu to %llu are needed and there are %llu", what, (unsigned long long)offset,
                (unsigned long long)(offset + bytes), (unsigned long long)size_bytes_);
  if (file_ == kNoFile) {
    if (bytes) memcpy(to, data_ + offset, bytes);
    return kOk;
  }
  unsigned char *at = static_cast<unsigned char *>(to);
  while (bytes > 0) {
    size_t got = 0;
    int error_number = 0;
    if (!os_read_file(file_, offset, at, bytes, &got, &error_number)) {
      char text[128];
      os_error_text(error_number, text, sizeof(text));
      return fail(failure, kIo, "%s: reading at offset %llu failed: %s", what, (unsigned long long)offset, text);
    }
    if (got == 0)
      return fail(failure, kIo, "%s: the file ended at offset %llu while it was read; it had %llu bytes when it was opened", what,
                  (unsigned long long)offset, (unsigned long long)size_bytes_);
    at += got, offset += got, bytes -= got;
  }
  return kOk;
}

}  // namespace proofinfer
