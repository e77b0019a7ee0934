#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <format>
#include <utility>

#include "core/platform.h"

namespace cria::platform {
namespace {

std::unexpected<Error> SystemError(const std::string& path, const char* action) {
  const int reason = errno;
  const ErrorCode code = reason == ENOENT   ? ErrorCode::kNotFound
                         : reason == ENOMEM ? ErrorCode::kOutOfMemory
                                            : ErrorCode::kIo;
  return Fail(code, std::format("{}: cannot {}: {}", path, action, std::strerror(reason)));
}

}  // namespace

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

FileMapping::~FileMapping() {
  if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

Result<File> File::Open(const std::string& path) {
  File file;
  file.path_ = path;
  // O_NONBLOCK: opening a pipe that nobody writes to would otherwise wait for ever.
  file.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) return SystemError(path, "open");
  struct stat status = {};
  if (fstat(file.descriptor_, &status) != 0) return SystemError(path, "examine");
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kIo, std::format("{}: is not a regular file", path));
  }
  file.size_bytes_ = static_cast<uint64_t>(status.st_size);
  return file;
}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string CacheFolder() {
  const auto absolute = [](const char* name) -> std::string {
    // XDG's specification: a path that is not absolute is to be ignored.
    const char* value = std::getenv(name);
    return value != nullptr && value[0] == '/' ? value : "";
  };
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache + "/cria";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/cria";
  return "";
}

Status File::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  while (!destination.empty()) {
    const ssize_t count =
        pread(descriptor_, destination.data(), destination.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path_, "read");
    if (count == 0) {
      return Fail(ErrorCode::kIo,
                  std::format("{}: ends at byte {}; it was cut short, copy or convert it again",
                              path_, offset));
    }
    destination = destination.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Result<FileMapping> File::Map(uint64_t offset, uint64_t bytes) const {
  if (offset > size_bytes_ || bytes > size_bytes_ - offset) {
    return Fail(ErrorCode::kInvalidFile, std::format("{}: bytes {} to {} lie outside the file's {}",
                                                     path_, offset, offset + bytes, size_bytes_));
  }
  FileMapping mapping;
  if (bytes == 0) return mapping;
  const uint64_t page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t lead = offset % page_bytes;
  void* base = mmap(nullptr, bytes + lead, PROT_READ, MAP_SHARED, descriptor_,
                    static_cast<off_t>(offset - lead));
  if (base == MAP_FAILED) return SystemError(path_, "map");
  mapping.base_ = base;
  mapping.mapped_bytes_ = bytes + lead;
  mapping.bytes_ = {static_cast<const std::byte*>(base) + lead, bytes};
  return mapping;
}

}  // namespace cria::platform
