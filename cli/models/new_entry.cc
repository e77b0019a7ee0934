#include "cli/models/new_entry.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "core/format.h"

namespace cria::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".new";
constexpr const char* kRemoved = ".old";

std::unexpected<Error> FailInStore(const fs::path& path, std::string_view what, int reason) {
  return Fail(ErrorCode::kIo,
              Format("{}: cannot {}: {}; CRIA_MODELS names another folder for models",
                     path.string(), what, static_cast<const char*>(std::strerror(reason))));
}

// Whether the descriptor is of the folder that has this name now.
bool HasName(int descriptor, const fs::path& path) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(descriptor, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

int OpenEntryFolder(const fs::path& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Locks the folder, which another process may have locked. Polls, so that signals end the program
// meanwhile. Returns errno.
int LockEntry(int descriptor, const std::function<void()>& waiting) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  for (bool is_first = true; flock(descriptor, LOCK_EX | LOCK_NB) != 0; is_first = false) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno;
    if (is_first && waiting) waiting();
    std::this_thread::sleep_for(kPause);
  }
  return 0;
}

void Synchronize(const fs::path& folder) {
  const int descriptor = OpenEntryFolder(folder);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

void RemoveContents(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator file(folder, error); !error && file != fs::directory_iterator();
       file.increment(error)) {
    std::error_code ignored;
    fs::remove_all(file->path(), ignored);
  }
}

}  // namespace

Result<std::optional<NewEntry>> NewEntry::Begin(const fs::path& store, const std::string& id,
                                                const std::function<void()>& waiting) {
  std::error_code error;
  fs::create_directories(store, error);
  if (error) return FailInStore(store, "create the folder", error.value());
  const fs::path folder = store / (id + kUnfinished);
  bool has_waited = false;
  const auto wait_once = [&] {
    if (!std::exchange(has_waited, true) && waiting) waiting();
  };
  while (true) {
    if (fs::exists(store / id, error)) return std::optional<NewEntry>();
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
      return FailInStore(folder, "create the folder", errno);
    }
    const int descriptor = OpenEntryFolder(folder);
    if (descriptor < 0) {
      if (errno == ENOENT) continue;  // Another process removed or renamed it.
      return FailInStore(folder, "open the folder", errno);
    }
    if (const int reason = LockEntry(descriptor, wait_once); reason != 0) {
      close(descriptor);
      return FailInStore(folder, "lock the folder", reason);
    }
    if (HasName(descriptor, folder)) {
      // A process that was killed may have left something.
      RemoveContents(folder);
      return NewEntry(store, id, descriptor);
    }
    close(descriptor);
  }
}

NewEntry::NewEntry(fs::path store, std::string id, int descriptor)
    : store_(std::move(store)),
      id_(std::move(id)),
      folder_(store_ / (id_ + kUnfinished)),
      descriptor_(descriptor) {}

NewEntry::NewEntry(NewEntry&& other) noexcept
    : store_(std::move(other.store_)),
      id_(std::move(other.id_)),
      folder_(std::move(other.folder_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

NewEntry::~NewEntry() {
  if (descriptor_ < 0) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  close(descriptor_);
}

Status NewEntry::Commit() {
  fsync(descriptor_);
  if (rename(folder_.c_str(), (store_ / id_).c_str()) != 0) {
    return FailInStore(folder_, "rename the folder", errno);
  }
  close(std::exchange(descriptor_, -1));
  Synchronize(store_);
  return {};
}

void RemoveAbandonedEntries(const fs::path& store) {
  std::error_code error;
  for (fs::directory_iterator entry(store, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() != kUnfinished && path.extension() != kRemoved) continue;
    const int descriptor = OpenEntryFolder(path);
    if (descriptor < 0) continue;
    std::error_code ignored;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && HasName(descriptor, path)) {
      fs::remove_all(path, ignored);
    }
    close(descriptor);
  }
}

Status RemoveStoredEntry(const fs::path& store, const std::string& id) {
  const fs::path removed = store / (id + kRemoved);
  std::error_code error;
  fs::remove_all(removed, error);
  if (rename((store / id).c_str(), removed.c_str()) != 0) {
    return FailInStore(store / id, "remove the model", errno);
  }
  fs::remove_all(removed, error);
  if (error) return FailInStore(removed, "remove the folder", error.value());
  return {};
}

}  // namespace cria::cli
