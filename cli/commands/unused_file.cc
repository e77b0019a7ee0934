#include "cli/commands/unused_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace cria::cli {

UnusedFile::UnusedFile(const std::string& path, std::span<const char> magic) {
  // A link is not followed, and opening a FIFO does not wait.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat status = {};
  std::string begin(magic.size(), '\0');
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) ||
      pread(descriptor_, begin.data(), begin.size(), 0) != static_cast<ssize_t>(begin.size()) ||
      !std::ranges::equal(begin, magic)) {
    defect_ = "is not a file of packed weights";
    return;
  }
  // The kernel grants a write lease only if no other process has the file open or mapped. A process
  // that opens it later waits, and this one gets a signal, for which SIGURG is chosen, because it
  // is ignored by default.
  if (fcntl(descriptor_, F_SETSIG, SIGURG) == 0 && fcntl(descriptor_, F_SETLEASE, F_WRLCK) == 0) {
    return;
  }
  is_used_ = true;
  defect_ = errno == EAGAIN ? "is used by a program"
                            : "may be used by a program: the system does not tell whether it is";
}

UnusedFile::~UnusedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace cria::cli
