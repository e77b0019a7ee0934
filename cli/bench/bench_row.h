#pragma once

#include <nlohmann/json.hpp>

#include "cli/bench/speed_bench.h"
#include "llm/engine.h"

namespace cria::cli {

// The result of a test as an object. Fields have llama-bench's names and meanings where llama-bench
// has them. The others have units in their names and are medians over the repetitions. Each
// repetition is compared with what was measured next to it: bus_fraction is the bandwidth of
// decoding divided by that of only reading, products_fraction the speed divided by that of only the
// matrix products, draft_gain the speed with drafts divided by that without. A field is null if the
// test does not have it or the system does not provide it.
nlohmann::ordered_json BenchRow(const Engine& engine, const SpeedResult& result);

}  // namespace cria::cli
