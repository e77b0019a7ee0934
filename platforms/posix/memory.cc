#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <format>
#include <utility>

#include "core/platform.h"

namespace cria::platform {

Result<PageBlock> PageBlock::Allocate(size_t bytes) {
  PageBlock block;
  if (bytes == 0) return block;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return Fail(
        ErrorCode::kOutOfMemory,
        std::format("cannot have {} bytes of memory ({}); choose a smaller context (-c) or a "
                    "smaller KV type (--kv)",
                    bytes, std::strerror(errno)));
  }
  block.bytes_ = {static_cast<std::byte*>(base), bytes};
  return block;
}

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

PageBlock::~PageBlock() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

MemoryUsage ReadMemoryUsage() {
  MemoryUsage usage;
  // Linux tells in kB; where the file does not exist, only the peak and the faults are known.
  if (std::FILE* status = std::fopen("/proc/self/status", "re"); status != nullptr) {
    char line[256];
    while (std::fgets(line, sizeof line, status) != nullptr) {
      unsigned long long kilobytes = 0;
      if (std::sscanf(line, "RssAnon: %llu", &kilobytes) == 1)
        usage.private_bytes = kilobytes * 1024;
      if (std::sscanf(line, "RssFile: %llu", &kilobytes) == 1) {
        usage.file_mapped_bytes = kilobytes * 1024;
      }
      if (std::sscanf(line, "VmHWM: %llu", &kilobytes) == 1) {
        usage.peak_resident_bytes = kilobytes * 1024;
      }
    }
    std::fclose(status);
  }
  rusage resources = {};
  if (getrusage(RUSAGE_SELF, &resources) == 0) {
    usage.major_faults = static_cast<uint64_t>(resources.ru_majflt);
    if (usage.peak_resident_bytes == 0) {
      usage.peak_resident_bytes = static_cast<uint64_t>(resources.ru_maxrss) * 1024;
    }
  }
  return usage;
}

}  // namespace cria::platform
