#include "cli/chat/signal_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace cria::cli {
namespace {

std::array<std::atomic<bool>, NSIG> has_arrived = {};
std::atomic<int> wake_descriptor = -1;

void NoteSignal(int number) {
  const int saved = errno;
  has_arrived[static_cast<size_t>(number)] = true;
  // If the pipe is full, there is enough in it already.
  [[maybe_unused]] const ssize_t count = write(wake_descriptor.load(), "", 1);
  errno = saved;
}

}  // namespace

SignalWatch::SignalWatch() {
  if (pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) == 0) wake_descriptor = pipe_[1];
  for (size_t i = 0; i < kSignals.size(); ++i) {
    Take(kSignals[i]);
    struct sigaction action = {};
    action.sa_handler = NoteSignal;
    // A write that waits for the terminal must not fail; poll() returns all the same.
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &action, &before_[i]);
  }
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  wake_descriptor = -1;
  for (const int descriptor : pipe_) close(descriptor);
}

bool SignalWatch::WaitForInput() const {
  std::array<pollfd, 2> descriptors = {pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                       pollfd{.fd = pipe_[0], .events = POLLIN, .revents = 0}};
  if (poll(descriptors.data(), descriptors.size(), -1) < 0) return errno != EINTR;
  if (descriptors[1].revents == 0) return true;
  std::array<char, 64> bytes = {};
  while (read(pipe_[0], bytes.data(), bytes.size()) > 0) {
  }
  return false;
}

bool SignalWatch::Take(int signal) {
  return has_arrived[static_cast<size_t>(signal)].exchange(false);
}

void SignalWatch::Suspend() {
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  struct sigaction own = {};
  sigaction(SIGTSTP, &usual, &own);
  std::raise(SIGTSTP);  // The program stops here.
  sigaction(SIGTSTP, &own, nullptr);
}

}  // namespace cria::cli
