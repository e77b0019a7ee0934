#include "xnn/watched_allocator.h"

#include <xnnpack.h>

#include <atomic>
#include <cstdlib>

namespace cria::xnn {
namespace {

void (*note_allocation)(const char* function, size_t bytes) = nullptr;
std::atomic<size_t> requests = 0;

void Note(const char* function, size_t bytes) {
  ++requests;
  note_allocation(function, bytes);
}

void* Allocate(void*, size_t bytes) {
  Note("xnn_allocator.allocate", bytes);
  return std::malloc(bytes);
}

void* Reallocate(void*, void* old, size_t bytes) {
  Note("xnn_allocator.reallocate", bytes);
  return std::realloc(old, bytes);
}

void Free(void*, void* place) { std::free(place); }

void* AlignedAllocate(void*, size_t alignment, size_t bytes) {
  Note("xnn_allocator.aligned_allocate", bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

const xnn_allocator kAllocator = {.context = nullptr,
                                  .allocate = Allocate,
                                  .reallocate = Reallocate,
                                  .deallocate = Free,
                                  .aligned_allocate = AlignedAllocate,
                                  .aligned_deallocate = Free};

}  // namespace

bool WatchXnnpackAllocations(void (*note)(const char* function, size_t bytes)) {
  note_allocation = note;
  if (xnn_initialize(&kAllocator) != xnn_status_success) return false;
  // Any operator will do, to see whose allocator is asked.
  const size_t before = requests.load();
  xnn_operator_t op = nullptr;
  if (xnn_create_convert_nc_f32_qd8(0, &op) != xnn_status_success) return false;
  xnn_delete_operator(op);
  return requests.load() > before;
}

}  // namespace cria::xnn
