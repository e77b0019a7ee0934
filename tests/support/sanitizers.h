#pragma once

namespace cria::support {

// Whether this program runs with a sanitizer that replaces the heap. Its allocations, memory and
// address space are then the sanitizer's, too, and cannot be compared with a plan. GCC defines a
// macro for each sanitizer; clang has __has_feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CRIA_HEAP_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define CRIA_HEAP_IS_SANITIZED 1
#endif
#endif
#ifndef CRIA_HEAP_IS_SANITIZED
#define CRIA_HEAP_IS_SANITIZED 0
#endif
inline constexpr bool kHeapIsSanitized = CRIA_HEAP_IS_SANITIZED;

}  // namespace cria::support
