#pragma once

#include <array>
#include <csignal>

namespace cria::cli {

// While an object exists, the signals that concern a line that is being typed neither end nor stop
// the program: they end WaitForInput, and Take tells which arrived. One object at a time.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  // Waits until standard input has something to read, or has ended. Returns false if a signal
  // arrived.
  bool WaitForInput() const;
  // Whether the signal arrived since it was last asked for.
  static bool Take(int signal);
  // Stops the program, as Ctrl-Z does by default, until it is continued.
  static void Suspend();

 private:
  // Ctrl-C, Ctrl-Z, the end of a stop, and another size of the terminal.
  static constexpr std::array<int, 4> kSignals = {SIGINT, SIGTSTP, SIGCONT, SIGWINCH};

  // Signals write into this pipe: they may arrive in another thread, which would not end a wait.
  std::array<int, 2> pipe_ = {-1, -1};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace cria::cli
