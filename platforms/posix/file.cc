#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/format.h"
#include "core/platform.h"

namespace cria::platform {
namespace {

std::unexpected<Error> SystemError(const std::string& path, const char* action) {
  const int reason = errno;
  const ErrorCode code = reason == ENOENT   ? ErrorCode::kNotFound
                         : reason == ENOMEM ? ErrorCode::kOutOfMemory
                                            : ErrorCode::kIo;
  return Fail(code, Format("{}: cannot {}: {}", path, action, std::strerror(reason)));
}

Result<uint64_t> SizeOfRegularFile(int descriptor, const std::string& path) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return SystemError(path, "examine");
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kIo, Format("{}: is not a regular file", path));
  }
  return static_cast<uint64_t>(status.st_size);
}

// Cria's folder in the user's folder that `variable` names, or in `in_home` of the home folder.
std::string UserFolder(const char* variable, const char* in_home) {
  const auto absolute = [](const char* name) -> std::string {
    // XDG's specification: a path that is not absolute is to be ignored.
    const char* value = std::getenv(name);
    return value != nullptr && value[0] == '/' ? value : "";
  };
  if (const std::string folder = absolute(variable); !folder.empty()) return folder + "/cria";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + in_home + "/cria";
  return "";
}

}  // namespace

bool CanOpenAnotherFile() {
  const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno != EMFILE && errno != ENFILE;
  close(descriptor);
  return true;
}

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
  // Without O_NONBLOCK, opening a named pipe waits until another process opens it for writing.
  file.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) return SystemError(path, "open");
  CRIA_ASSIGN_OR_RETURN(file.size_bytes_, SizeOfRegularFile(file.descriptor_, path));
  return file;
}

Result<File> File::OfDescriptor(int descriptor, uint64_t offset, std::optional<uint64_t> bytes) {
  File file;
  // Without the number, which differs from run to run.
  file.path_ = "descriptor";
  file.descriptor_ = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (file.descriptor_ < 0) return SystemError(file.path_, "duplicate");
  CRIA_ASSIGN_OR_RETURN(const uint64_t size_bytes, SizeOfRegularFile(file.descriptor_, file.path_));
  if (offset > size_bytes || bytes.value_or(0) > size_bytes - offset) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: {} bytes from {} lie outside the file's {}",
                                                file.path_, bytes.value_or(0), offset, size_bytes));
  }
  file.begin_ = offset;
  file.size_bytes_ = bytes.value_or(size_bytes - offset);
  return file;
}

Result<File> File::Duplicate() const {
  File file;
  file.path_ = path_;
  file.descriptor_ = fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (file.descriptor_ < 0) return SystemError(path_, "duplicate");
  file.begin_ = begin_;
  file.size_bytes_ = size_bytes_;
  return file;
}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(begin_, other.begin_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string CacheFolder() { return UserFolder("XDG_CACHE_HOME", "/.cache"); }

std::string DataFolder() { return UserFolder("XDG_DATA_HOME", "/.local/share"); }

std::string StateFolder() { return UserFolder("XDG_STATE_HOME", "/.local/state"); }

Status File::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  while (!destination.empty()) {
    // Behind a part, more of the file may follow.
    const uint64_t left = offset < size_bytes_ ? size_bytes_ - offset : 0;
    const ssize_t count = left == 0 ? 0
                                    : pread(descriptor_, destination.data(),
                                            std::min<uint64_t>(left, destination.size()),
                                            static_cast<off_t>(begin_ + offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path_, "read");
    if (count == 0) {
      return Fail(
          ErrorCode::kIo,
          Format("{}: ends at byte {}; it was cut short, copy or convert it again", path_, offset));
    }
    destination = destination.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Result<FileMapping> File::Map(uint64_t offset, uint64_t bytes) const {
  if (offset > size_bytes_ || bytes > size_bytes_ - offset) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: bytes {} to {} lie outside the file's {}",
                                                path_, offset, offset + bytes, size_bytes_));
  }
  FileMapping mapping;
  if (bytes == 0) return mapping;
  const uint64_t page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t lead = (is_mappable() ? begin_ + offset : offset) % page_bytes;
  if (!std::in_range<size_t>(bytes + lead)) {
    return Fail(ErrorCode::kOutOfMemory,
                Format("{}: {} bytes are more than a program of 32 bits can map; a system of "
                       "64 bits can",
                       path_, bytes));
  }
  void* base = is_mappable() ? mmap(nullptr, bytes + lead, PROT_READ, MAP_SHARED, descriptor_,
                                    static_cast<off_t>(begin_ + offset - lead))
                             : mmap(nullptr, bytes + lead, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return SystemError(path_, "map");
  mapping.base_ = base;
  mapping.mapped_bytes_ = bytes + lead;
  const std::span view(static_cast<std::byte*>(base) + lead, static_cast<size_t>(bytes));
  mapping.bytes_ = view;
  if (!is_mappable()) CRIA_RETURN_IF_ERROR(ReadAt(offset, view));
  return mapping;
}

}  // namespace cria::platform
