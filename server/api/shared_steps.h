#pragma once

#include <cstddef>
#include <functional>

#include "cria/error.h"
#include "server/work/work_queue.h"

namespace cria::server {

// Calls `run` with each number below `count`, in their order: on this thread, which must be one of
// a job, and on those that have no job meanwhile. Returns when all calls have ended. After the
// first error, which it returns, no further call begins; too little memory is an error, too.
Status RunShared(WorkQueue& work, size_t count, const std::function<Status(size_t)>& run);

}  // namespace cria::server
