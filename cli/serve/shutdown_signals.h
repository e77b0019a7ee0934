#pragma once

#include <array>
#include <csignal>

namespace cria::cli {

// While an object exists, the first Ctrl-C, SIGTERM or SIGUSR1 ends Wait, and a second one ends the
// program at once. mpirun passes SIGUSR1 on to all ranks, while it kills them a quarter of a second
// after its own SIGTERM. One object at a time.
class ShutdownSignals {
 public:
  ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;
  ~ShutdownSignals();

  // Waits for the first signal.
  void Wait() const;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGUSR1};

  // A signal may arrive in any thread, so that it writes into this pipe.
  std::array<int, 2> pipe_ = {-1, -1};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace cria::cli
