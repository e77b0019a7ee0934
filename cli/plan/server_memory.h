#pragma once

#include <cstddef>
#include <vector>

#include "llm/memory_plan.h"
#include "server/http/http_bounds.h"

namespace cria::cli {

// What a server takes beside its model: the parts of a plan. `num_sequences` requests are answered
// at the same time, and `max_waiting` wait.
std::vector<MemoryLine> ServerMemory(const server::HttpBounds& bounds, size_t num_sequences,
                                     size_t max_waiting);

}  // namespace cria::cli
