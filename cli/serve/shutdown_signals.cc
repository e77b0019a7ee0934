#include "cli/serve/shutdown_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace cria::cli {
namespace {

std::atomic<int> shutdown_descriptor = -1;
std::atomic<bool> has_begun = false;

void BeginShutdown(int number) {
  if (has_begun.exchange(true)) {
    // It ends the program when this handler returns.
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  const int saved = errno;
  [[maybe_unused]] const ssize_t count = write(shutdown_descriptor.load(), "", 1);
  errno = saved;
}

}  // namespace

ShutdownSignals::ShutdownSignals() {
  has_begun = false;
  if (pipe2(pipe_.data(), O_CLOEXEC) == 0) shutdown_descriptor = pipe_[1];
  struct sigaction action = {};
  action.sa_handler = BeginShutdown;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    // A signal that the caller ignores, as a shell's background jobs do, stays ignored.
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

ShutdownSignals::~ShutdownSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  shutdown_descriptor = -1;
  for (const int descriptor : pipe_) close(descriptor);
}

void ShutdownSignals::Wait() const {
  char byte = 0;
  while (read(pipe_[0], &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace cria::cli
