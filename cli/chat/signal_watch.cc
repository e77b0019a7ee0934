#include "cli/chat/signal_watch.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>

namespace cria::cli {
namespace {

volatile std::sig_atomic_t was_raised[NSIG] = {};

void NoteSignal(int number) { was_raised[number] = 1; }

sigset_t SetOf(std::span<const int> signals) {
  sigset_t set = {};
  sigemptyset(&set);
  for (const int number : signals) sigaddset(&set, number);
  return set;
}

}  // namespace

SignalWatch::SignalWatch() {
  const sigset_t watched = SetOf(kSignals);
  sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    Take(kSignals[i]);
    struct sigaction action = {};
    action.sa_handler = NoteSignal;
    sigaction(kSignals[i], &action, &before_[i]);
  }
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

bool SignalWatch::WaitForInput() const {
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ppoll(&input, 1, nullptr, &mask_before_) >= 0 || errno != EINTR;
}

bool SignalWatch::Take(int signal) {
  const bool was = was_raised[signal] != 0;
  was_raised[signal] = 0;
  return was;
}

void SignalWatch::Suspend() {
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  struct sigaction own = {};
  sigaction(SIGTSTP, &usual, &own);
  std::raise(SIGTSTP);
  const int stop[] = {SIGTSTP};
  const sigset_t set = SetOf(stop);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);  // The program stops here.
  sigprocmask(SIG_BLOCK, &set, nullptr);
  sigaction(SIGTSTP, &own, nullptr);
}

}  // namespace cria::cli
