#include "core/thread_pool.h"

#include <pthreadpool.h>

#include <string>

namespace cria {

Result<ThreadPool> ThreadPool::Create(size_t num_threads) {
  if (num_threads == 0) {
    return Fail(ErrorCode::kUsage, "the number of threads must be at least 1");
  }
  if (num_threads == 1) return ThreadPool(nullptr, 1);
  pthreadpool* pool = pthreadpool_create(num_threads);
  if (pool == nullptr) {
    return Fail(ErrorCode::kOutOfMemory,
                "cannot start " + std::to_string(num_threads) + " threads; ask for fewer with -t");
  }
  return ThreadPool(pool, num_threads);
}

void ThreadPool::Deleter::operator()(pthreadpool* pool) const { pthreadpool_destroy(pool); }

void ThreadPool::Run(size_t count, void (*task)(void*, size_t), void* context) const {
  // Denormals cost hundreds of cycles on some cores and carry nothing a model needs. Without a pool
  // this runs the same loop under the same floating-point mode, so results stay bitwise equal.
  pthreadpool_parallelize_1d(pool_.get(), task, context, count, PTHREADPOOL_FLAG_DISABLE_DENORMALS);
}

}  // namespace cria
