#include "core/thread_pool.h"

#include <pthread.h>
#include <pthreadpool.h>

#include <atomic>
#include <exception>
#include <format>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace cria {
namespace {

// The thread sanitizer cannot see how pthreadpool, which it did not compile, hands work over: these
// tell it. They do nothing in other builds.
void MarkHandedOver([[maybe_unused]] void* work) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(work);
#endif
}
void MarkTakenOver([[maybe_unused]] void* work) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(work);
#endif
}

// Whether so many threads can run beside this one: starts them, all at once, and ends them.
// pthreadpool does not look whether its threads start, and waits forever for one that did not.
bool CanStart(size_t num_threads) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  std::vector<pthread_t> threads;
  threads.reserve(num_threads);
  pthread_mutex_lock(&gate);
  const auto pass = [](void* argument) -> void* {
    auto* const mutex = static_cast<pthread_mutex_t*>(argument);
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return nullptr;
  };
  pthread_t thread = {};
  while (threads.size() < num_threads && pthread_create(&thread, nullptr, pass, &gate) == 0) {
    threads.push_back(thread);
  }
  pthread_mutex_unlock(&gate);
  for (const pthread_t started : threads) pthread_join(started, nullptr);
  return threads.size() == num_threads;
}

}  // namespace

Result<ThreadPool> ThreadPool::Create(size_t num_threads) {
  constexpr size_t kMaxThreads = 1024;
  if (num_threads == 0 || num_threads > kMaxThreads) {
    return Fail(ErrorCode::kUsage,
                std::format("{} threads are outside 1 to {}", num_threads, kMaxThreads),
                RemedyKind::kChooseThreads);
  }
  if (num_threads == 1) return ThreadPool(nullptr, 1);
  pthreadpool* const pool = CanStart(num_threads - 1) ? pthreadpool_create(num_threads) : nullptr;
  if (pool == nullptr) {
    return Fail(ErrorCode::kOutOfMemory, std::format("cannot start {} threads", num_threads),
                RemedyKind::kFewerThreads);
  }
  return ThreadPool(pool, num_threads);
}

void ThreadPool::Deleter::operator()(pthreadpool* pool) const { pthreadpool_destroy(pool); }

void ThreadPool::Run(size_t count, void (*task)(void*, size_t), void* context) const {
  struct Work {
    void (*task)(void*, size_t);
    void* context;
    std::atomic<bool> has_thrown;
    std::exception_ptr thrown;
  } work = {task, context, false, nullptr};
  MarkHandedOver(&work);
  // Denormals cost hundreds of cycles on some cores and carry nothing a model needs. Without a pool
  // this runs the same loop under the same floating-point mode, so results stay bitwise equal.
  pthreadpool_parallelize_1d(
      pool_.get(),
      [](void* argument, size_t index) {
        MarkTakenOver(argument);
        auto* const taken = static_cast<Work*>(argument);
        try {
          taken->task(taken->context, index);
        } catch (const std::exception&) {
          // Past the first function of a thread, it would end the process; and on 32-bit Arm, past
          // those of pthreadpool.
          if (!taken->has_thrown.exchange(true)) taken->thrown = std::current_exception();
        }
        MarkHandedOver(argument);
      },
      &work, count, PTHREADPOOL_FLAG_DISABLE_DENORMALS);
  MarkTakenOver(&work);
  if (work.thrown != nullptr) std::rethrow_exception(work.thrown);
}

}  // namespace cria
