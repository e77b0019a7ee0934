#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "core/platform.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cria::platform {
namespace {

// The file has about 1.5 kB, and 8 bytes more for each supplementary group of the user.
constexpr size_t kStatusBytes = 16384;

// /proc/self/status, as much as fits into `buffer`; empty if it cannot be read.
std::string_view ReadStatus(std::span<char> buffer) {
  const int descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  size_t filled = 0;
  while (filled < buffer.size()) {
    const ssize_t count = read(descriptor, buffer.data() + filled, buffer.size() - filled);
    if (count <= 0) break;
    filled += static_cast<size_t>(count);
  }
  close(descriptor);
  return {buffer.data(), filled};
}

// The number in the line that begins with `name`; the file has it in kB.
uint64_t StatusBytes(std::string_view status, std::string_view name) {
  const size_t line = status.find(name);
  if (line == status.npos) return 0;
  const size_t digits = status.find_first_not_of(" \t", line + name.size());
  if (digits == status.npos) return 0;
  uint64_t kilobytes = 0;
  std::from_chars(status.data() + digits, status.data() + status.size(), kilobytes);
  return kilobytes * 1024;
}

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// The whole pages that memory lies in.
struct PageRange {
  std::byte* begin = nullptr;
  size_t bytes = 0;
};

PageRange PagesOf(std::span<const std::byte> memory) {
  if (memory.empty()) return {};
  const size_t page_bytes = PageBytes();
  const size_t lead = reinterpret_cast<uintptr_t>(memory.data()) % page_bytes;
  const size_t bytes = (lead + memory.size() + page_bytes - 1) / page_bytes * page_bytes;
  // The system's functions take no pointer to const, but change nothing here.
  return {const_cast<std::byte*>(memory.data()) - lead, bytes};
}

}  // namespace

Result<PageBlock> PageBlock::Allocate(uint64_t bytes) {
  PageBlock block;
  if (bytes == 0) return block;
  const bool is_addressable = std::in_range<size_t>(bytes);
  void* const base = is_addressable
                         ? mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                         : MAP_FAILED;
  if (base == MAP_FAILED) {
    return Fail(ErrorCode::kOutOfMemory,
                Format("cannot allocate {} bytes of memory ({})", bytes,
                       std::strerror(is_addressable ? errno : ENOMEM)),
                RemedyKind::kLessContext);
  }
  block.bytes_ = {static_cast<std::byte*>(base), static_cast<size_t>(bytes)};
  return block;
}

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

PageBlock::~PageBlock() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

void MakeResident(std::span<std::byte> memory) {
#ifdef MADV_POPULATE_WRITE  // Since Linux 5.14.
  const PageRange pages = PagesOf(memory);
  if (pages.bytes != 0) madvise(pages.begin, pages.bytes, MADV_POPULATE_WRITE);
#else
  (void)memory;
#endif
}

void ExpectUseInNoOrder(std::span<const std::byte> mapped) {
  const PageRange pages = PagesOf(mapped);
  if (pages.bytes != 0) madvise(pages.begin, pages.bytes, MADV_RANDOM);
}

void BeginToRead(std::span<const std::byte> mapped) {
  const PageRange pages = PagesOf(mapped);
  if (pages.bytes == 0) return;
  const size_t page_bytes = PageBytes();
  const auto is_in_memory = [&](size_t offset) {
    unsigned char state = 0;
    return mincore(pages.begin + offset, page_bytes, &state) == 0 && (state & 1) != 0;
  };
  if (is_in_memory(0) && is_in_memory(pages.bytes - page_bytes)) return;
  madvise(pages.begin, pages.bytes, MADV_WILLNEED);
}

MemoryUsage ReadMemoryUsage() {
  MemoryUsage usage;
  char buffer[kStatusBytes];
  const std::string_view status = ReadStatus(buffer);
  usage.private_bytes = StatusBytes(status, "\nRssAnon:");
  usage.file_mapped_bytes = StatusBytes(status, "\nRssFile:");
  usage.peak_resident_bytes = StatusBytes(status, "\nVmHWM:");
  usage.virtual_bytes = StatusBytes(status, "\nVmSize:");
  usage.peak_virtual_bytes = StatusBytes(status, "\nVmPeak:");
  // If /proc is not mounted, only the peak and the faults are known.
  rusage resources = {};
  if (getrusage(RUSAGE_SELF, &resources) == 0) {
    usage.major_faults = static_cast<uint64_t>(resources.ru_majflt);
    if (usage.peak_resident_bytes == 0) {
      usage.peak_resident_bytes = static_cast<uint64_t>(resources.ru_maxrss) * 1024;
    }
  }
  return usage;
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void UseOneHeap() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
  // Otherwise glibc raises these limits when a large block is freed, and later keeps what others
  // free.
  constexpr int kReturnedBytes = 128 << 10;
  mallopt(M_MMAP_THRESHOLD, kReturnedBytes);
  mallopt(M_TRIM_THRESHOLD, kReturnedBytes);
#endif
}

uint64_t ThreadStackBytes() {
  size_t bytes = 0;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
  }
  return bytes;
}

}  // namespace cria::platform
