#pragma once

#include <array>
#include <csignal>

namespace cria::cli {

// While an object exists, the first Ctrl-C or SIGTERM ends Wait, and a second one ends the program
// at once. One object at a time.
class ShutdownSignals {
 public:
  ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;
  ~ShutdownSignals();

  // Waits for the first signal.
  void Wait() const;

 private:
  static constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

  // A signal may arrive in any thread, so that it writes into this pipe.
  std::array<int, 2> pipe_ = {-1, -1};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace cria::cli
