#include "core/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <format>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cria {
namespace {

bool MeansDiskFull(int reason) { return reason == ENOSPC || reason == EDQUOT || reason == EFBIG; }

// What a person can do about a system error.
const char* RemedyFor(int reason) {
  switch (reason) {
    case ENOENT:
    case ENOTDIR:
      return "make its folder first, or choose another output";
    case EACCES:
    case EPERM:
      return "choose an output in a folder that you may write to";
    case EROFS:
      return "choose an output on a file system that can be written to";
    case ENAMETOOLONG:
      return "choose a shorter output name";
    case EISDIR:
      return "choose the name of a file";
    case EEXIST:
      return "remove the old temporary files beside it, whose names hold \".tmp-\"";
    default:
      return "check the disk, or choose another output";
  }
}

std::string SystemSentence(const std::filesystem::path& path, const char* action, int reason) {
  return std::format("{}: cannot {}: {}; {}", path.string(), action, std::strerror(reason),
                     RemedyFor(reason));
}

// The name that a rename may take: through a symbolic link, so that the link itself survives.
Result<std::filesystem::path> ResolveTarget(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  // Known before any work is done: the temporary name may be possible where this one is not.
  if (!std::filesystem::status_known(status)) {
    return Fail(ErrorCode::kIo, SystemSentence(path, "write", error.value()));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Fail(ErrorCode::kIo,
                std::format("{}: exists and is not a regular file; give another output name",
                            path.string()));
  }
  if (!path.has_filename()) {
    return Fail(ErrorCode::kUsage,
                std::format("\"{}\": is not the name of a file; give one", path.string()));
  }
  if (!std::filesystem::exists(status)) return path;
  auto target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

std::filesystem::path FolderOf(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// What the temporary names of a target begin with; the process and a number follow.
std::string TemporaryPrefix(const std::filesystem::path& path) {
  // The longest name that file systems take is 255 bytes.
  constexpr size_t kMaxNameBytes = 200;
  return std::format(".{}.tmp-", path.filename().string().substr(0, kMaxNameBytes));
}

bool IsTemporaryName(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  const std::string_view numbers = name.substr(prefix.size());
  const size_t dash = numbers.find('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < numbers.size() &&
         numbers.find_first_not_of("0123456789-") == std::string_view::npos;
}

// Whether the file that is open still has this name.
bool HasName(int descriptor, const std::filesystem::path& path) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(descriptor, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Removes a temporary file that no process holds locked: the one that made it is gone. Where files
// cannot be locked, nobody knows, and it stays.
void RemoveIfAbandoned(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  // By now it may have been renamed, and be the target itself.
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && HasName(descriptor, path)) {
    unlink(path.c_str());
  }
  close(descriptor);
}

// What a process that was killed leaves behind is as large as what it wrote.
void RemoveAbandonedSiblings(const std::filesystem::path& path) {
  const std::string prefix = TemporaryPrefix(path);
  std::error_code error;
  std::filesystem::directory_iterator sibling(FolderOf(path), error);
  for (; !error && sibling != std::filesystem::directory_iterator(); sibling.increment(error)) {
    if (IsTemporaryName(sibling->path().filename().string(), prefix)) {
      RemoveIfAbandoned(sibling->path());
    }
  }
}

// Locks a new file for as long as it is written. False: another process took it for abandoned
// before it was locked, and removed it.
bool LockNew(int descriptor, const std::filesystem::path& path) {
  int result = -1;
  do {
    result = flock(descriptor, LOCK_EX);
  } while (result != 0 && errno == EINTR);
  // On a file system without locks, others leave it alone.
  return result != 0 || HasName(descriptor, path);
}

// Makes a new file beside `path`, where a rename needs it, and tells its name. -1 with errno set:
// it cannot be made.
int CreateBeside(const std::filesystem::path& path, std::filesystem::path& temporary_path) {
  constexpr int kMaxAttempts = 1000;
  const std::string prefix = TemporaryPrefix(path);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    temporary_path = path.parent_path() / std::format("{}{}-{}", prefix, getpid(), attempt);
    const int descriptor =
        open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) return -1;
    if (descriptor < 0) continue;
    if (LockNew(descriptor, temporary_path)) return descriptor;
    close(descriptor);
  }
  errno = EEXIST;
  return -1;
}

// Whether this process may not write files of so many bytes. A write beyond that would also raise
// SIGXFSZ, which ends a process that does not expect it.
bool ExceedsFileSizeLimit(uint64_t bytes) {
  rlimit limit = {};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         bytes > limit.rlim_cur;
}

}  // namespace

Result<OutputFile> OutputFile::Create(const std::filesystem::path& path, uint64_t bytes) {
  OutputFile file;
  file.bytes_ = bytes;
  CRIA_ASSIGN_OR_RETURN(file.path_, ResolveTarget(path));
  RemoveAbandonedSiblings(file.path_);
  if (ExceedsFileSizeLimit(bytes)) return file.SystemError(EFBIG, "write");
  std::filesystem::path temporary_path;
  file.descriptor_ = CreateBeside(file.path_, temporary_path);
  if (file.descriptor_ < 0) return file.SystemError(errno, "write");
  file.temporary_path_ = std::move(temporary_path);
  // The size first, so that gaps are zeros; then the space. Where the file system cannot reserve
  // space, a full disk is found when writing.
  if (ftruncate(file.descriptor_, static_cast<off_t>(bytes)) != 0) {
    return file.SystemError(errno, "write");
  }
  const int reason = posix_fallocate(file.descriptor_, 0, static_cast<off_t>(bytes));
  if (MeansDiskFull(reason)) return file.SystemError(reason, "write");
  return file;
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(path_, other.path_);
  std::swap(temporary_path_, other.temporary_path_);
  return *this;
}

OutputFile::~OutputFile() {
  // While it is locked, so that the name cannot be another file's by then.
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
  if (descriptor_ >= 0) close(descriptor_);
}

std::unexpected<Error> OutputFile::SystemError(int reason, const char* action) const {
  if (MeansDiskFull(reason)) {
    return Fail(ErrorCode::kIo,
                std::format("{}: there is no room for its {} bytes; free some or write elsewhere",
                            path_.string(), bytes_));
  }
  return Fail(ErrorCode::kIo, SystemSentence(path_, action, reason));
}

Status OutputFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "write");
    if (count == 0) return SystemError(ENOSPC, "write");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Status OutputFile::Commit() {
  if (fsync(descriptor_) != 0) return SystemError(errno, "write");
  // Still locked, or another process could take it for abandoned. All is on disk, so that closing
  // has nothing to tell.
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) return SystemError(errno, "rename");
  temporary_path_.clear();
  close(std::exchange(descriptor_, -1));
  // The new name is durable only once its folder is; a file system that cannot do that is no reason
  // to call a complete file a failure.
  const int descriptor = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
  return {};
}

}  // namespace cria
