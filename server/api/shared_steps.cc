#include "server/api/shared_steps.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

namespace cria::server {
namespace {

// Nothing may be thrown on threads that run no job.
Status WithoutThrowing(const std::function<Status(size_t)>& run, size_t index) {
  try {
    return run(index);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kOutOfMemory, "there is too little memory to answer");
  }
}

}  // namespace

Status RunShared(WorkQueue& work, size_t count, const std::function<Status(size_t)>& run) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status first_error;
  work.Share([&] {
    const size_t index = next.fetch_add(1);
    if (index >= count) return false;
    Status status = WithoutThrowing(run, index);
    if (status) return true;
    const std::scoped_lock lock(mutex);
    if (first_error) first_error = std::move(status);
    next = count;
    return false;
  });
  return first_error;
}

}  // namespace cria::server
