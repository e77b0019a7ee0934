#pragma once

#include <cstddef>
#include <vector>

#include "llm/memory_plan.h"
#include "serve/http/http_bounds.h"

namespace cria::cli {

// What a server takes beside its model: the parts of a plan. `num_sequences` requests are answered
// at the same time, and `max_waiting` wait.
std::vector<MemoryLine> ServerMemory(const serve::HttpBounds& bounds, size_t num_sequences,
                                     size_t max_waiting);

}  // namespace cria::cli
