#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "core/platform_threads.h"
#include "cria/error.h"

namespace cria {

// A loop over fewer numbers than this takes less time on one thread than sharing it takes.
inline constexpr size_t kMinSharedElements = size_t{2} * 1024;

// A fixed set of threads for loops of some microseconds and more. One caller at a time, which may
// be another thread for every loop.
//
// Other processes may take the processors that the threads run on. So the caller waits only for
// threads that have begun to help; a thread that is late sits out for a while, up to a quarter of a
// second, and its part of the loop is done by the others. A thread without
// work spins for some milliseconds and then sleeps.
class ThreadPool {
 public:
  // `num_threads` counts the calling thread; 1 makes a pool without threads of its own. If it is
  // more than `max_running`, only so many threads run, and num_threads() is `num_threads` anyway.
  static Result<ThreadPool> Create(size_t num_threads,
                                   size_t max_running = platform::MaxRunningThreads());

  ThreadPool(ThreadPool&&) noexcept;
  ThreadPool& operator=(ThreadPool&&) noexcept;
  ~ThreadPool();

  size_t num_threads() const { return num_threads_; }

  // From the next loop on, at most so many threads share the work, at least one; at first, all do.
  // This changes no result, because any thread may do any part of a loop. Any thread.
  void LimitThreads(size_t max_threads) const;

  // Calls `task(index)`, or `task(index, thread)`, for every index in [0, count), in any order, and
  // returns when all are done; `count` fits into 32 bits. `thread` is below num_threads(), and no
  // two tasks that run at once have the same. Allocates nothing. If a task throws (only operator
  // new does), the other tasks run, and then the first exception is thrown to the caller.
  template <typename Task>
  void ParallelFor(size_t count, Task&& task) const {
    using TaskType = std::remove_reference_t<Task>;
    Run(
        count,
        [](void* context, size_t index, size_t thread) {
          TaskType& called = *static_cast<TaskType*>(context);
          if constexpr (std::is_invocable_v<TaskType&, size_t, size_t>) {
            called(index, thread);
          } else {
            called(index);
          }
        },
        const_cast<void*>(static_cast<const void*>(&task)));
  }

 private:
  class Crew;

  ThreadPool(std::unique_ptr<Crew> crew, size_t num_threads);
  void Run(size_t count, void (*task)(void*, size_t, size_t), void* context) const;

  std::unique_ptr<Crew> crew_;
  size_t num_threads_;
};

}  // namespace cria
