#include "base/checksum.h"

#include <string.h>

#include "base/source.h"

namespace proofinfer {

void Checksum::add_bytes(const void *data, size_t count) {
  const unsigned char *bytes = static_cast<const unsigned char *>(data);
  add(count / 8, [bytes](size_t i) { return load_u64(bytes + 8 * i); });
  if (count % 8) {
    unsigned char last[8] = {0};
    memcpy(last, bytes + count / 8 * 8, count % 8);
    add_word(load_u64(last));
  }
  add_word(count);
}

}  // namespace proofinfer
