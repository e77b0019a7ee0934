#pragma once

#include <cstddef>
#include <string>

#include "support/sanitizers.h"

namespace cria::support {

// Whether the allocations of this program can be watched: not if a sanitizer replaces the heap, and
// only with glibc.
#if defined(__GLIBC__) && !CRIA_HEAP_IS_SANITIZED
#define CRIA_ALLOCATIONS_ARE_SEEN 1
#else
#define CRIA_ALLOCATIONS_ARE_SEEN 0
#endif

// While an object exists, it notices every request for memory by any thread: calls of malloc and
// related functions (and so operator new), mmap, mremap, brk and sbrk. Any other growth of the
// address space is noticed by its size at the end. A program may have one object at a time, and
// must link allocation_watch.cc, whose definitions replace those functions of the C library.
class AllocationWatch {
 public:
  // `phase` appears in the report and must outlive the watch.
  explicit AllocationWatch(const char* phase);
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  // Ends the watch. Returns an empty text if nothing was allocated; otherwise the phase, the number
  // of requests, and the function, the size and the callers of the first one.
  std::string Finish();

 private:
  // Unused where allocations are not seen.
  [[maybe_unused]] const char* phase_;
  [[maybe_unused]] size_t virtual_bytes_;
  [[maybe_unused]] bool finished_ = false;
};

// Reports an allocation by another allocator than the C library's to the watch, if there is one.
void NoteAllocation(const char* function, size_t bytes);

// The number of calls of all watched functions since the program began.
size_t AllocationsSoFar();

}  // namespace cria::support
