#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mpi/mpi_transport.h"

namespace cria::mpi {

// The thread that gives signs of life and misses those of others. Rank 0 watches all ranks, and the
// others watch rank 0.
class MpiTransport::Watch {
 public:
  explicit Watch(MpiTransport& transport);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  // Lets the thread call MPI, if it wants to: a thread that polls would lock the mutex again before
  // the other one wakes.
  void LetThrough() {
    while (wants_mpi_.load(std::memory_order_relaxed)) std::this_thread::yield();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Other;

  void Run();
  void Beat();
  void Receive();
  void CheckAll(Clock::time_point now);
  [[noreturn]] void EndBecauseOf(size_t rank);

  MpiTransport& transport_;
  std::vector<std::unique_ptr<Other>> others_;
  std::atomic<bool> wants_mpi_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace cria::mpi
