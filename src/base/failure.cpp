#include "base/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace proofinfer {

// A cut at the buffer's end must not leave half a character: drop the trailing bytes of an incomplete UTF-8 sequence.
static void drop_incomplete_tail(char *text) {
  size_t length = strlen(text);
  size_t start = length;
  while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) start--;
  if (start == 0) return;
  unsigned char lead = (unsigned char)text[start - 1];
  size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (length - (start - 1) < need) text[start - 1] = 0;
}

Status fail(Failure *failure, Status status, const char *format, ...) {
  failure->status = status;
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(failure->message, Failure::kCapacity, format, arguments);
  va_end(arguments);
  if (written < 0) failure->message[0] = 0;
  if (written >= (int)Failure::kCapacity) drop_incomplete_tail(failure->message);
  for (char *c = failure->message; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
  return status;
}

}  // namespace proofinfer
