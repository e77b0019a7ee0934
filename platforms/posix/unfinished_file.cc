#include "posix/unfinished_file.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace cria {
namespace {

// Guards the list. Signals are blocked in the thread that holds it; otherwise a handler that calls
// RemoveAll would wait for the function that it has interrupted.
class ListLock {
 public:
  ListLock() : before_(Take()) {}
  ListLock(const ListLock&) = delete;
  ListLock& operator=(const ListLock&) = delete;
  ~ListLock() {
    is_held.clear(std::memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  // Returns the signals that were blocked before.
  static sigset_t Take() {
    sigset_t all = {};
    sigset_t before = {};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (is_held.test_and_set(std::memory_order_acquire)) sched_yield();
    return before;
  }

 private:
  static constinit std::atomic_flag is_held;
  sigset_t before_;
};

constinit std::atomic_flag ListLock::is_held;
constinit UnfinishedFile* first_file = nullptr;

}  // namespace

std::unique_ptr<UnfinishedFile> UnfinishedFile::Create(std::filesystem::path path, mode_t mode,
                                                       int& descriptor) {
  std::unique_ptr<UnfinishedFile> file(new UnfinishedFile(std::move(path)));
  int reason = 0;
  {
    const ListLock lock;
    descriptor = open(file->path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    reason = errno;
    if (descriptor >= 0) {
      file->next_ = first_file;
      file->link_ = &first_file;
      if (first_file != nullptr) first_file->link_ = &file->next_;
      first_file = file.get();
    }
  }
  if (descriptor < 0) file.reset();
  errno = reason;
  return file;
}

UnfinishedFile::~UnfinishedFile() {
  if (link_ == nullptr) return;
  unlink(path_.c_str());
  Forget();
}

void UnfinishedFile::Forget() {
  const ListLock lock;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  link_ = nullptr;
}

void UnfinishedFile::RemoveAll() {
  ListLock::Take();
  for (const UnfinishedFile* file = first_file; file != nullptr; file = file->next_) {
    unlink(file->path_.c_str());
  }
}

}  // namespace cria
