#pragma once

#include <cstddef>
#include <string>

namespace cria::support {

// Whether this program's allocations can be seen: not where a sanitizer owns the heap, nor without
// glibc.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define CRIA_ALLOCATIONS_ARE_SEEN 0
#endif
#endif
#if !defined(CRIA_ALLOCATIONS_ARE_SEEN) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CRIA_ALLOCATIONS_ARE_SEEN 1
#elif !defined(CRIA_ALLOCATIONS_ARE_SEEN)
#define CRIA_ALLOCATIONS_ARE_SEEN 0
#endif

// Sees every request for memory, by any thread, while it lives: malloc and its kin (and with them
// operator new), mmap, mremap, brk and sbrk by the functions that are called; whatever else makes
// the address space grow, by its size afterwards. A program has at most one at a time, and links
// allocation_watch.cc, whose definitions of those functions stand in for the library's.
class AllocationWatch {
 public:
  // `phase` appears in the report and must outlive the watch.
  explicit AllocationWatch(const char* phase);
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  // Ends the watch. Empty where nothing was allocated; otherwise the phase, the number of requests,
  // and of the first the function, its bytes and who called it.
  std::string Finish();

 private:
  const char* phase_;
  size_t virtual_bytes_;
  bool finished_ = false;
};

// For allocators that are not the C library's: tells the watch, if there is one.
void NoteAllocation(const char* function, size_t bytes);

// How many requests all watched functions have had since the program began.
size_t AllocationsSoFar();

}  // namespace cria::support
