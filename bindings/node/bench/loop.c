/* The generation loop in C that overhead.js compares with. It reaches the library through the functions that it is given, so that both
 * loops run the same one. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int32_t next_function(void *generation, void *cancel, int32_t *token, char *buffer, size_t capacity, size_t *needed,
                              int32_t *stop_reason, void **error);

/* Nanoseconds of `steps` calls, or -1. */
int64_t loop_run(next_function *next, void *generation, int32_t steps) {
  struct timespec from, to;
  char text[64];
  size_t needed;
  int32_t token, stop, status = 0;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (; status == 0 && steps > 0; steps--) status = next(generation, NULL, &token, text, sizeof text, &needed, &stop, NULL);
  clock_gettime(CLOCK_MONOTONIC, &to);
  if (status != 0) return -1;
  return (int64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (to.tv_nsec - from.tv_nsec);
}
