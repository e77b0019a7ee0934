#include "core/output_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "posix/unfinished_file.h"

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
      return "remove the old temporary files beside it, whose names contain \".tmp-\"";
    default:
      return "check the disk, or choose another output";
  }
}

std::string SystemSentence(const std::filesystem::path& path, const char* action, int reason) {
  return Format("{}: cannot {}: {}; {}", path.string(), action, std::strerror(reason),
                RemedyFor(reason));
}

// The name that the file gets: the target of a symbolic link, unless the link is replaced.
Result<std::filesystem::path> ResolveTarget(const std::filesystem::path& path, LinkPolicy links) {
  std::error_code error;
  if (links == LinkPolicy::kReplaceLink && std::filesystem::is_symlink(path, error)) return path;
  const auto status = std::filesystem::status(path, error);
  // Checked before any work is done, because the temporary name may be possible if this one is not.
  if (!std::filesystem::status_known(status)) {
    return Fail(ErrorCode::kIo, SystemSentence(path, "write", error.value()));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Fail(
        ErrorCode::kIo,
        Format("{}: exists and is not a regular file; give another output name", path.string()));
  }
  if (!path.has_filename()) {
    return Fail(ErrorCode::kUsage,
                Format("\"{}\": is not the name of a file; give one", path.string()));
  }
  if (!std::filesystem::exists(status)) return path;
  auto target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

std::filesystem::path FolderOf(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// The beginning of a target's temporary names; the process's id and a number follow.
std::string TemporaryPrefix(const std::filesystem::path& path) {
  // The longest name that file systems take is 255 bytes.
  constexpr size_t kMaxNameBytes = 200;
  return Format(".{}.tmp-", path.filename().string().substr(0, kMaxNameBytes));
}

bool IsTemporaryName(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  const std::string_view numbers = name.substr(prefix.size());
  const size_t dash = numbers.find('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < numbers.size() &&
         numbers.find_first_not_of("0123456789-") == std::string_view::npos;
}

// Whether the open file still has this name.
bool HasName(int descriptor, const std::filesystem::path& path) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(descriptor, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Removes a temporary file if no process holds its lock, because the process that made it has ended
// then. If the file system has no locks, the file stays.
void RemoveIfAbandoned(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  // The file may have been renamed to the target before it was locked.
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && HasName(descriptor, path)) {
    unlink(path.c_str());
  }
  close(descriptor);
}

// A killed process leaves a file that may be as large as a model.
void RemoveAbandonedSiblings(const std::filesystem::path& path) {
  const std::string prefix = TemporaryPrefix(path);
  // std::filesystem's iterator ends the process if there is no memory for it.
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(FolderOf(path).c_str()), closedir);
  if (folder == nullptr) return;
  while (const dirent* const sibling = readdir(folder.get())) {
    if (IsTemporaryName(sibling->d_name, prefix)) {
      RemoveIfAbandoned(path.parent_path() / sibling->d_name);
    }
  }
}

// Locks a new file for as long as it is written. Returns false if another process removed it before
// it was locked.
bool LockNew(int descriptor, const std::filesystem::path& path) {
  int result = -1;
  do {
    result = flock(descriptor, LOCK_EX);
  } while (result != 0 && errno == EINTR);
  // On a file system without locks, other processes do not remove it.
  return result != 0 || HasName(descriptor, path);
}

// Makes a new file beside `path`, so that it can be renamed to it, and sets `descriptor` to the
// open file. Returns null, with errno set, if it cannot be made.
std::unique_ptr<UnfinishedFile> CreateBeside(const std::filesystem::path& path, Readers readers,
                                             int& descriptor) {
  constexpr int kMaxAttempts = 1000;
  const std::string prefix = TemporaryPrefix(path);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    auto file =
        UnfinishedFile::Create(path.parent_path() / Format("{}{}-{}", prefix, getpid(), attempt),
                               readers == Readers::kNone ? S_IRUSR | S_IWUSR : 0666, descriptor);
    if (file == nullptr && errno != EEXIST) return nullptr;
    if (file == nullptr) continue;
    if (LockNew(descriptor, file->path())) return file;
    // The name may belong to another file by now.
    file->Forget();
    close(std::exchange(descriptor, -1));
  }
  errno = EEXIST;
  return nullptr;
}

// Whether the process's limit forbids a file of this size. A write beyond the limit would also
// raise SIGXFSZ, which ends a process that does not handle it.
bool ExceedsFileSizeLimit(uint64_t bytes) {
  rlimit limit = {};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         bytes > limit.rlim_cur;
}

// Writes most data to the disk before fsync: signals are handled between the calls here, but not
// while fsync waits for a slow disk. fsync reports what fails.
void WriteBack(int descriptor, uint64_t bytes) {
  constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
  constexpr uint64_t kMaxBytesAhead = 8 * kPieceBytes;  // Keeps the disk busy.
  for (uint64_t begin = 0; begin < bytes + kMaxBytesAhead; begin += kPieceBytes) {
    const auto call = [&](uint64_t offset, unsigned int flags) {
      sync_file_range(descriptor, static_cast<off64_t>(offset), kPieceBytes, flags);
    };
    if (begin < bytes) call(begin, SYNC_FILE_RANGE_WRITE);
    if (begin >= kMaxBytesAhead) call(begin - kMaxBytesAhead, SYNC_FILE_RANGE_WAIT_BEFORE);
  }
}

}  // namespace

OutputFile::OutputFile() = default;

Result<OutputFile> OutputFile::Create(const std::filesystem::path& path, uint64_t bytes,
                                      LinkPolicy links, Readers readers) {
  OutputFile file;
  file.bytes_ = bytes;
  CRIA_ASSIGN_OR_RETURN(file.path_, ResolveTarget(path, links));
  RemoveAbandonedSiblings(file.path_);
  if (ExceedsFileSizeLimit(bytes)) return file.SystemError(EFBIG, "write");
  file.temporary_ = CreateBeside(file.path_, readers, file.descriptor_);
  if (file.temporary_ == nullptr) return file.SystemError(errno, "write");
  // Sets the size, so that gaps are zeros, and then reserves the space. If the file system cannot
  // reserve space, WriteAt reports a full disk.
  if (ftruncate(file.descriptor_, static_cast<off_t>(bytes)) != 0) {
    return file.SystemError(errno, "write");
  }
  const int reason = posix_fallocate(file.descriptor_, 0, static_cast<off_t>(bytes));
  if (MeansDiskFull(reason)) return file.SystemError(reason, "write");
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  return *this;
}

OutputFile::~OutputFile() {
  // The name is removed while the file is locked, so that it cannot belong to another file.
  temporary_.reset();
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputFile::RemoveUnfinished() { UnfinishedFile::RemoveAll(); }

std::unexpected<Error> OutputFile::SystemError(int reason, const char* action) const {
  if (MeansDiskFull(reason)) {
    return Fail(ErrorCode::kIo,
                Format("{}: there is no room for its {} bytes; free some or write elsewhere",
                       path_.string(), bytes_));
  }
  return Fail(ErrorCode::kIo, SystemSentence(path_, action, reason));
}

Status OutputFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  // No signal is handled while the kernel makes a writer wait for a slow disk, so the pieces are
  // small.
  constexpr size_t kMaxPieceBytes = size_t{256} << 10;
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kMaxPieceBytes),
                                 static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "write");
    if (count == 0) return SystemError(ENOSPC, "write");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Status OutputFile::ReadAt(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "read");
    if (count == 0) return SystemError(EIO, "read");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Status OutputFile::Commit() {
  WriteBack(descriptor_, bytes_);
  if (fsync(descriptor_) != 0) return SystemError(errno, "write");
  // The file is still locked; otherwise another process could remove it. All data is on the disk,
  // so closing the file has no error to report.
  if (rename(temporary_->path().c_str(), path_.c_str()) != 0) return SystemError(errno, "rename");
  temporary_->Forget();
  temporary_.reset();
  close(std::exchange(descriptor_, -1));
  // Makes the new name durable. The file is complete even if the file system cannot do that.
  const int descriptor = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
  return {};
}

Result<platform::File> OutputFile::OpenToRead() const {
  return platform::File::OfDescriptor(descriptor_, 0, std::nullopt);
}

Result<platform::File> OutputFile::TakeUnnamed() {
  CRIA_ASSIGN_OR_RETURN(platform::File file, OpenToRead());
  temporary_.reset();
  close(std::exchange(descriptor_, -1));
  return file;
}

}  // namespace cria
