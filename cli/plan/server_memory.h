#pragma once

#include <cstddef>
#include <vector>

#include "cli/flags/server_options.h"
#include "llm/memory_plan.h"
#include "server/http/http_bounds.h"

namespace cria::cli {

// What a server takes beside its model: the parts of a plan. `num_sequences` requests are answered
// at the same time, and `max_waiting` wait. The name of the line of the prompts on the disk has
// their bound. Of several models, all may be loaded at once.
std::vector<MemoryLine> ServerMemory(const server::HttpBounds& bounds, size_t num_sequences,
                                     size_t max_waiting, const PrefixCacheOptions& prefix_cache,
                                     size_t num_models = 1);
// How many threads a server starts besides.
size_t ServerThreads(size_t num_sequences, const PrefixCacheOptions& prefix_cache,
                     size_t num_models = 1);

}  // namespace cria::cli
