// Every operating-system call of the library, behind a few functions; one os_<system>.cpp implements them. Any thread.
#ifndef PROOFINFER_BASE_OS_H
#define PROOFINFER_BASE_OS_H

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

namespace proofinfer {

// Memory straight from the system for large blocks: zeroed, page-aligned, in huge pages where the system offers them. nullptr: none left.
void *os_map_memory(size_t bytes);
void os_unmap_memory(void *memory, size_t bytes);
// From the C library, for small blocks.
void *os_heap_allocate(size_t bytes, size_t alignment);
void os_heap_free(void *memory);

// Opens a regular file for reading. path: [path_bytes] without NUL. Gives a descriptor and the size now.
Status os_open_file(const char *path, size_t path_bytes, int64_t *file, uint64_t *size_bytes, Failure *failure);
void os_close_file(int64_t file);
// Reads up to `bytes` at `offset`; *got is 0 only at the end of the file. `error_number` explains a false return.
bool os_read_file(int64_t file, uint64_t offset, void *to, size_t bytes, size_t *got, int *error_number);
// The first `bytes` bytes of an open file, read-only, shared with everyone who maps it; nullptr: `error_number` explains, 0: no memory. They stay when the file is
// closed. A file that becomes shorter while it is mapped kills who reads behind its end.
void *os_map_file(int64_t file, size_t bytes, int *error_number);
void os_unmap_file(void *memory, size_t bytes);
// Whether users other than the owner and the group may write to an open file.
bool os_others_may_write(int64_t file);
// Whether a file of that name (NUL-terminated) may be put in the place of what is there: nothing, or a regular file. Not of a device, a pipe, a
// directory or a link.
bool os_may_replace(const char *name);
// Creates a file that must not exist yet; name: NUL-terminated. After a false return `taken` says whether one of that name exists.
bool os_create_file(const char *name, int64_t *file, bool *taken, int *error_number);
// Writes all bytes at `offset`; EFBIG past the limit that the process has for files.
bool os_write_file(int64_t file, uint64_t offset, const void *from, size_t bytes, int *error_number);
// Brings what was written to the disk and renames the file, which gets the permissions of the one that it replaces.
bool os_finish_file(int64_t file, const char *from, const char *to, int *error_number);
void os_remove_file(const char *name);
// "No such file or directory" and the like, into text: [capacity].
void os_error_text(int error_number, char *text, size_t capacity);

uint64_t os_process_id();

// CPUs that this process may run on, at least 1.
size_t os_cpu_count();

// aarch64 only: whether the system reports the int8 dot-product instructions.
bool os_has_dot_products();

// A thread with `stack_bytes` of stack, and what it takes to wait for others without spinning. Plain structs with C storage, so that the
// header needs no system header.
struct OsThread {
  alignas(16) unsigned char storage[16];
};
bool os_thread_start(OsThread *thread, size_t stack_bytes, void (*run)(void *), void *argument);
void os_thread_join(OsThread *thread);

// Sleeps while *word == expected; may return early. os_wake wakes all sleepers on the word.
void os_wait(const uint32_t *word, uint32_t expected);
void os_wake(const uint32_t *word);

}  // namespace proofinfer

#endif
