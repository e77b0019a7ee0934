#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cria {

// Where the caller of a thread pool and one of its workers meet. The caller opens the gate when
// there is work; the worker joins when it sees that; the caller closes the gate when nothing is
// left to be taken, and waits only for a worker that has joined. A worker that does not get a
// processor in time causes no delay. Both sides wait by spinning for a bounded time and
// sleep afterwards.
//
// What the caller writes before Open is visible to a worker that Join let in, and what the worker
// writes before Finish is visible to the caller after AwaitFinish.
class WorkerGate {
 public:
  using Clock = std::chrono::steady_clock;

  // What the worker was doing when the caller opened or closed its gate.
  enum class Worker { kWaiting, kAsleep, kRefused, kJoined };

  // For the caller. The gate must be closed; a worker that sleeps is woken.
  Worker Open();
  // Returns kJoined if the worker has joined: then AwaitFinish must be called. Otherwise it cannot
  // join any more; kRefused says that it saw the open gate on the caller's processor and slept.
  Worker Close();
  // Spins for `spin`, then sleeps. Adds to `slept` how long it slept. Returns the time after that,
  // or `now`, which is the time of the call, if it took less than about a microsecond.
  Clock::time_point AwaitFinish(Clock::time_point now, Clock::duration spin,
                                Clock::duration& slept);
  // Ends the worker's WaitUntilOpen for good.
  void Quit();

  // For the worker. Returns true when the gate was opened, and false after Quit. A worker on
  // `caller_processor` sleeps at once: spinning or working there, it would only keep the caller
  // from running.
  bool WaitUntilOpen(const std::atomic<int>& caller_processor);
  // False if the caller has closed the gate again.
  bool Join();
  void Finish();

 private:
  enum State : uint32_t { kClosed, kOpen, kJoined, kAwaited, kAsleep, kRefused, kQuit };

  // Changes the state from `from` to `to` and sleeps until it is changed again; does nothing if
  // the state is not `from`.
  void SleepAs(State from, State to);

  std::atomic<uint32_t> state_ = kClosed;
};

// The indices that a thread has not begun yet. Its own thread takes the first one, others the last
// one.
class IndexRange {
 public:
  static constexpr size_t kMaxIndices = UINT32_MAX;

  void Set(size_t begin, size_t end) {
    bounds_.store(Pack(static_cast<uint32_t>(begin), static_cast<uint32_t>(end)),
                  std::memory_order_relaxed);
  }
  bool TakeFirst(size_t& index) {
    return Take([&](uint32_t begin, uint32_t end) {
      index = begin;
      return Pack(begin + 1, end);
    });
  }
  bool TakeLast(size_t& index) {
    return Take([&](uint32_t begin, uint32_t end) {
      index = end - 1;
      return Pack(begin, end - 1);
    });
  }

 private:
  static constexpr uint64_t Pack(uint32_t begin, uint32_t end) {
    return uint64_t{begin} << 32 | end;
  }

  template <typename Shorten>
  bool Take(const Shorten& shorten) {
    uint64_t bounds = bounds_.load(std::memory_order_relaxed);
    while (true) {
      const auto begin = static_cast<uint32_t>(bounds >> 32);
      const auto end = static_cast<uint32_t>(bounds);
      if (begin >= end) return false;
      // Relaxed: the gate orders everything but who takes an index.
      if (bounds_.compare_exchange_weak(bounds, shorten(begin, end), std::memory_order_relaxed)) {
        return true;
      }
    }
  }

  std::atomic<uint64_t> bounds_ = 0;
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
};

}  // namespace cria
