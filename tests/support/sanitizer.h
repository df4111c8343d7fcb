// PROOFINFER_TEST_SANITIZED is defined where a sanitizer stands in for the allocator and reserves address space of its own.
#ifndef PROOFINFER_TESTS_SUPPORT_SANITIZER_H
#define PROOFINFER_TESTS_SUPPORT_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROOFINFER_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define PROOFINFER_TEST_SANITIZED 1
#endif
#endif

#endif
