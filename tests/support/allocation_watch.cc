#include "support/allocation_watch.h"

#include <atomic>
#include <format>

#include "core/platform.h"
#include "support/emulation.h"

#if CRIA_ALLOCATIONS_ARE_SEEN

#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

namespace cria::support {
namespace {

constexpr int kMaxFrames = 32;

// The first watched request. Written by the thread that set `watched` to 1.
struct FirstRequest {
  const char* function;
  size_t bytes;
  void* frames[kMaxFrames];
  int num_frames;
};

std::atomic<bool> watching = false;
std::atomic<size_t> watched = 0;
std::atomic<size_t> total = 0;
FirstRequest first_request;

}  // namespace

void NoteAllocation(const char* function, size_t bytes) {
  total.fetch_add(1, std::memory_order_relaxed);
  if (!watching.load(std::memory_order_acquire)) return;
  if (watched.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  first_request.function = function;
  first_request.bytes = bytes;
  first_request.num_frames = backtrace(first_request.frames, kMaxFrames);
}

size_t AllocationsSoFar() { return total.load(); }

AllocationWatch::AllocationWatch(const char* phase) : phase_(phase) {
  // The first call loads the library that walks the stack, which allocates.
  void* frame = nullptr;
  backtrace(&frame, 1);
  watched = 0;
  virtual_bytes_ = platform::ReadMemoryUsage().virtual_bytes;
  watching = true;
}

AllocationWatch::~AllocationWatch() { watching = false; }

std::string AllocationWatch::Finish() {
  watching = false;
  if (finished_) return "";
  finished_ = true;
  const size_t count = watched.load();
  const size_t virtual_bytes = platform::ReadMemoryUsage().virtual_bytes;
  // The emulator's own memory grows, too.
  if (count == 0 && (virtual_bytes <= virtual_bytes_ || IsEmulated())) return "";
  std::string report =
      std::format("{}: {} allocations, and {} bytes more of address space", phase_, count,
                  static_cast<long long>(virtual_bytes) - static_cast<long long>(virtual_bytes_));
  if (count == 0) return report;
  report += std::format("; the first was {} of {} bytes, called from\n", first_request.function,
                        first_request.bytes);
  char** const names = backtrace_symbols(first_request.frames, first_request.num_frames);
  for (int i = 0; names != nullptr && i < first_request.num_frames; ++i) {
    report += std::format("  {}\n", names[i]);
  }
  std::free(names);
  return report;
}

namespace {

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace cria::support

using cria::support::Next;
using cria::support::NoteAllocation;

// glibc's heap functions under names that are not replaced.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) noexcept {
  NoteAllocation("malloc", bytes);
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) noexcept {
  NoteAllocation("calloc", count * bytes);
  return __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) noexcept {
  NoteAllocation("realloc", bytes);
  return __libc_realloc(old, bytes);
}

void* reallocarray(void* old, size_t count, size_t bytes) noexcept {
  NoteAllocation("reallocarray", count * bytes);
  size_t product = 0;
  if (__builtin_mul_overflow(count, bytes, &product)) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_realloc(old, product);
}

void* memalign(size_t alignment, size_t bytes) noexcept {
  NoteAllocation("memalign", bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  NoteAllocation("aligned_alloc", bytes);
  return __libc_memalign(alignment, bytes);
}

void* valloc(size_t bytes) noexcept {
  NoteAllocation("valloc", bytes);
  return __libc_memalign(static_cast<size_t>(getpagesize()), bytes);
}

int posix_memalign(void** result, size_t alignment, size_t bytes) noexcept {
  NoteAllocation("posix_memalign", bytes);
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const place = __libc_memalign(alignment, bytes);
  if (place == nullptr) return ENOMEM;
  *result = place;
  return 0;
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  NoteAllocation("mmap", bytes);
  static auto* const next = Next<decltype(mmap)>("mmap");
  return next(at, bytes, protection, flags, file, offset);
}

void* mmap64(void* at, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  NoteAllocation("mmap64", bytes);
  static auto* const next = Next<decltype(mmap64)>("mmap64");
  return next(at, bytes, protection, flags, file, offset);
}

void* mremap(void* old, size_t old_bytes, size_t bytes, int flags, ...) noexcept {
  NoteAllocation("mremap", bytes);
  va_list arguments;
  va_start(arguments, flags);
  void* const at = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  static auto* const next = Next<decltype(mremap)>("mremap");
  return next(old, old_bytes, bytes, flags, at);
}

int brk(void* end) noexcept {
  NoteAllocation("brk", 0);
  static auto* const next = Next<decltype(brk)>("brk");
  return next(end);
}

void* sbrk(intptr_t increment) noexcept {
  // With 0, it only returns the end of the heap.
  if (increment != 0) NoteAllocation("sbrk", static_cast<size_t>(increment));
  static auto* const next = Next<decltype(sbrk)>("sbrk");
  return next(increment);
}

}  // extern "C"

#else

namespace cria::support {

void NoteAllocation(const char*, size_t) {}
size_t AllocationsSoFar() { return 0; }
AllocationWatch::AllocationWatch(const char* phase) : phase_(phase), virtual_bytes_(0) {}
AllocationWatch::~AllocationWatch() = default;
std::string AllocationWatch::Finish() { return ""; }

}  // namespace cria::support

#endif
