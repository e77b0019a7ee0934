#pragma once

namespace cria::support {

// Whether a sanitizer owns this program's heap, so that its allocations, its memory and its address
// space are not its own. GCC defines a macro for each, clang answers __has_feature.
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
