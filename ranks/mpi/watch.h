#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "mpi/late_rank.h"
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
  struct Sign;
  struct Other;

  void Run();
  void Beat();
  void Receive();
  void Send(Other& other, bool is_last);
  void ReceiveSign(Other& other);
  void TakeLeave();
  void CheckAll(Clock::time_point now);
  // `what` is the rest of the sentence about the rank.
  [[noreturn]] void EndBecauseOf(size_t rank, std::string_view what);

  MpiTransport& transport_;
  std::vector<std::unique_ptr<Other>> others_;
  LateRank late_rank_;
  std::atomic<bool> wants_mpi_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace cria::mpi
