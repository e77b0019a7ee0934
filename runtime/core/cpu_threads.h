#pragma once

#include <cstddef>

#include "core/platform.h"

namespace cria {

// How many threads to use when nobody says: one for each core of the fastest kind. A slow core in
// the group would make every product wait for it, and a second thread on a core shares its units.
// At least 1.
size_t DefaultThreadCount(const platform::CpuTopology& topology);

// `num_threads`, or for 0 the default on this machine.
size_t ThreadCountOrDefault(size_t num_threads);

}  // namespace cria
