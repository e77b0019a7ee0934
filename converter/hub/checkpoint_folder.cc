#include "converter/hub/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "core/format.h"

namespace cria::hub {
namespace {

constexpr std::string_view kPartialEnding = ".part";
// All processes that use the folder share a lock of the first file; one at a time, which downloads,
// has locked the second.
constexpr const char* kUseLockName = ".in-use";
constexpr const char* kDownloadLockName = ".downloading";

std::unexpected<Error> FailToUse(const std::filesystem::path& path, std::string_view what) {
  const int error = errno;
  if (error == ELOOP || error == ENOTDIR) {
    return Fail(ErrorCode::kIo, Format("{}: is a symbolic link or of a wrong kind, and a "
                                       "download uses neither; remove it",
                                       path.string()));
  }
  return Fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              Format("{}: cannot {}: {}", path.string(), what, std::strerror(error)));
}

// A folder in a folder, which is created if it does not exist. `number` may be AT_FDCWD.
Result<Descriptor> OpenFolder(int number, const std::string& name,
                              const std::filesystem::path& path, int flags = O_NOFOLLOW) {
  if (mkdirat(number, name.c_str(), 0777) != 0 && errno != EEXIST) {
    return FailToUse(path, "create the folder");
  }
  Descriptor folder(openat(number, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  if (folder.number() < 0) return FailToUse(path, "open the folder");
  return folder;
}

// Opens a file in the folder and locks it: `operation` is LOCK_SH or LOCK_EX. Polls if it is
// locked, so that signals end the program meanwhile.
Result<Descriptor> OpenLocked(int folder, const char* name, const std::filesystem::path& path,
                              int operation, const std::function<void()>& waiting) {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  Descriptor file(openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.number() < 0) return FailToUse(path / name, "open the file");
  for (bool is_first = true; flock(file.number(), operation | LOCK_NB) != 0; is_first = false) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FailToUse(path / name, "lock the file");
    if (is_first && waiting) waiting();
    std::this_thread::sleep_for(kInterval);
  }
  return file;
}

// Whether the folder still has the open file under this name.
bool IsNamed(const Descriptor& file, int folder, const char* name) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(file.number(), &opened) == 0 &&
         fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && opened.st_ino == named.st_ino;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Status PartialFile::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file_.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailToUse(path_, "write the file");
    bytes = bytes.subspan(static_cast<size_t>(count));
    size_bytes_ += static_cast<uint64_t>(count);
  }
  return {};
}

Status PartialFile::Empty() {
  if (ftruncate(file_.number(), 0) != 0) return FailToUse(path_, "empty the file");
  size_bytes_ = 0;
  return {};
}

Status PartialFile::ReadAll(const std::function<void(std::span<const std::byte>)>& take) const {
  std::vector<std::byte> buffer(size_t{1} << 20);
  for (uint64_t offset = 0; offset < size_bytes_;) {
    const ssize_t count =
        pread(file_.number(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailToUse(path_, "read the file");
    if (count == 0) {
      return Fail(ErrorCode::kIo, Format("{}: another program shortened the file", path_));
    }
    take(std::span(buffer).first(static_cast<size_t>(count)));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Result<CheckpointFolder> CheckpointFolder::Open(const std::filesystem::path& cache,
                                                const std::string& host, const CheckpointName& name,
                                                const std::string& commit,
                                                const std::function<void()>& waiting) {
  std::error_code error;
  std::filesystem::create_directories(cache, error);
  // Another process may remove the folder between two steps.
  for (int tries = 0; tries < 100; ++tries) {
    CRIA_ASSIGN_OR_RETURN(std::optional<CheckpointFolder> folder,
                          TryOpen(cache, host, name, commit, waiting));
    if (folder) return *std::move(folder);
  }
  return Fail(ErrorCode::kIo,
              Format("{}: other processes keep removing what is created there", cache.string()));
}

Result<std::optional<CheckpointFolder>> CheckpointFolder::TryOpen(
    const std::filesystem::path& cache, const std::string& host, const CheckpointName& name,
    const std::string& commit, const std::function<void()>& waiting) {
  std::optional<CheckpointFolder> none;
  CheckpointFolder result;
  // The cache itself, which the user chose, may be a link.
  CRIA_ASSIGN_OR_RETURN(Descriptor outer, OpenFolder(AT_FDCWD, cache.string(), cache, 0));
  std::filesystem::path path = cache;
  for (const std::string& part : {host, name.organization, commit}) {
    path /= part;
    auto inner = OpenFolder(outer.number(), part, path);
    if (!inner && inner.error().code() == ErrorCode::kNotFound) return none;
    CRIA_ASSIGN_OR_RETURN(outer, std::move(inner));
  }
  auto use = OpenLocked(outer.number(), kUseLockName, path, LOCK_SH, {});
  if (!use && use.error().code() == ErrorCode::kNotFound) return none;
  CRIA_ASSIGN_OR_RETURN(result.use_lock_, std::move(use));
  // The process that had locked the file may have removed it.
  if (!IsNamed(result.use_lock_, outer.number(), kUseLockName)) return none;
  CRIA_ASSIGN_OR_RETURN(result.download_lock_,
                        OpenLocked(outer.number(), kDownloadLockName, path, LOCK_EX, waiting));
  result.path_ = path / name.name;
  CRIA_ASSIGN_OR_RETURN(result.folder_, OpenFolder(outer.number(), name.name, result.path_));
  return std::optional(std::move(result));
}

std::string CheckpointFolder::PathOf(std::string_view file, std::string_view ending) const {
  return (path_ / file).string() + std::string(ending);
}

Result<Descriptor> CheckpointFolder::FolderOf(std::string_view file) const {
  Descriptor folder(fcntl(folder_.number(), F_DUPFD_CLOEXEC, 0));
  std::filesystem::path path = path_;
  if (folder.number() < 0) return FailToUse(path, "open the folder again");
  const std::filesystem::path parents = std::filesystem::path(file).parent_path();
  for (const std::filesystem::path& part : parents) {
    path /= part;
    CRIA_ASSIGN_OR_RETURN(folder, OpenFolder(folder.number(), part.string(), path));
  }
  return folder;
}

Result<std::optional<uint64_t>> CheckpointFolder::BytesOf(std::string_view file,
                                                          std::string_view ending) const {
  CRIA_ASSIGN_OR_RETURN(const Descriptor folder, FolderOf(file));
  const std::string name = std::filesystem::path(file).filename().string() + std::string(ending);
  struct stat status = {};
  if (fstatat(folder.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return FailToUse(PathOf(file, ending), "look at the file");
  }
  if (!S_ISREG(status.st_mode)) {
    errno = ELOOP;
    return FailToUse(PathOf(file, ending), "use it");
  }
  return static_cast<uint64_t>(status.st_size);
}

Result<std::optional<uint64_t>> CheckpointFolder::WholeBytes(std::string_view file) const {
  return BytesOf(file, "");
}

Result<uint64_t> CheckpointFolder::PartialBytes(std::string_view file) const {
  CRIA_ASSIGN_OR_RETURN(const auto bytes, BytesOf(file, kPartialEnding));
  return bytes.value_or(0);
}

Result<PartialFile> CheckpointFolder::OpenPartial(std::string_view file) const {
  CRIA_ASSIGN_OR_RETURN(const Descriptor folder, FolderOf(file));
  const std::string path = PathOf(file, kPartialEnding);
  const std::string name = std::filesystem::path(path).filename().string();
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  for (bool is_first = true;; is_first = false) {
    Descriptor opened(openat(folder.number(), name.c_str(), kFlags, 0666));
    struct stat status = {};
    if (opened.number() < 0 || fstat(opened.number(), &status) != 0) {
      return FailToUse(path, "open the file");
    }
    if (!S_ISREG(status.st_mode)) {
      errno = ELOOP;
      return FailToUse(path, "use it");
    }
    if (status.st_nlink <= 1 || !is_first) {
      return PartialFile(std::move(opened), static_cast<uint64_t>(status.st_size), path);
    }
    // The file has another name, which may be someone else's: writes a new one.
    unlinkat(folder.number(), name.c_str(), 0);
  }
}

Status CheckpointFolder::Finish(std::string_view file) const {
  CRIA_ASSIGN_OR_RETURN(const Descriptor folder, FolderOf(file));
  const std::string name = std::filesystem::path(file).filename().string();
  const std::string partial = name + std::string(kPartialEnding);
  if (renameat(folder.number(), partial.c_str(), folder.number(), name.c_str()) != 0) {
    return FailToUse(PathOf(file, kPartialEnding), "rename the file");
  }
  return {};
}

void CheckpointFolder::RemovePartial(std::string_view file) const {
  const auto folder = FolderOf(file);
  if (!folder) return;
  const std::string partial =
      std::filesystem::path(file).filename().string() + std::string(kPartialEnding);
  unlinkat(folder->number(), partial.c_str(), 0);
}

void CheckpointFolder::Share() { download_lock_ = Descriptor(); }

void CheckpointFolder::Remove() const {
  if (flock(use_lock_.number(), LOCK_EX | LOCK_NB) != 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  const std::filesystem::path commit = path_.parent_path();
  std::filesystem::remove(commit / kDownloadLockName, ignored);
  std::filesystem::remove(commit / kUseLockName, ignored);
  // These fail if they have other models.
  std::filesystem::remove(commit, ignored);
  std::filesystem::remove(commit.parent_path(), ignored);
  std::filesystem::remove(commit.parent_path().parent_path(), ignored);
}

}  // namespace cria::hub
