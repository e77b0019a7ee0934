#pragma once

#include <cstddef>

#include "core/platform.h"

namespace cria {

// The default number of threads: one for each core of the fastest kind. A slow core in the group
// would make every product wait for it, and two threads on one core share its units. At least 1.
size_t DefaultThreadCount(const platform::CpuTopology& topology);

// `num_threads`, or the default on this machine if it is 0: DefaultThreadCount, or fewer if the
// quotas of control groups allow fewer.
size_t ThreadCountOrDefault(size_t num_threads);

}  // namespace cria
