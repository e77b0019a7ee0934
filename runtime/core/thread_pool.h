#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "cria/error.h"

struct pthreadpool;

namespace cria {

// Passing over fewer numbers than these takes less time than sharing them between threads.
inline constexpr size_t kMinSharedElements = size_t{32} * 1024;

// A fixed set of threads that never sleep inside a token. One caller at a time.
class ThreadPool {
 public:
  // `num_threads` counts the calling thread; 1 makes a pool without threads of its own.
  static Result<ThreadPool> Create(size_t num_threads);

  ThreadPool(ThreadPool&&) noexcept = default;
  ThreadPool& operator=(ThreadPool&&) noexcept = default;

  size_t num_threads() const { return num_threads_; }

  // Calls `task(index)` for every index in [0, count), in any order, and returns when all are done.
  // Allocates nothing. Throws what a task has thrown, which is operator new's failure at most.
  template <typename Task>
  void ParallelFor(size_t count, Task&& task) const {
    using TaskType = std::remove_reference_t<Task>;
    Run(
        count, [](void* context, size_t index) { (*static_cast<TaskType*>(context))(index); },
        const_cast<void*>(static_cast<const void*>(&task)));
  }

  // For libraries that take the pool itself; null when there is one thread.
  pthreadpool* handle() const { return pool_.get(); }

 private:
  struct Deleter {
    void operator()(pthreadpool* pool) const;
  };

  ThreadPool(pthreadpool* pool, size_t num_threads) : pool_(pool), num_threads_(num_threads) {}
  void Run(size_t count, void (*task)(void*, size_t), void* context) const;

  std::unique_ptr<pthreadpool, Deleter> pool_;
  size_t num_threads_;
};

}  // namespace cria
