#pragma once

#include <nlohmann/json.hpp>

#include "cli/bench/speed_bench.h"
#include "llm/engine.h"

namespace cria::cli {

// The result of a test as an object. Fields have llama-bench's names and meanings where it has
// them. The others have their units in their names and are medians over the repetitions. Each
// repetition is compared with what was measured beside it: bus_fraction is what decoding read by
// what reading alone reached, products_fraction the speed by that of the matrix products alone. A
// field is null where a test has no such thing or the system does not tell.
nlohmann::ordered_json BenchRow(const Engine& engine, const SpeedResult& result);

}  // namespace cria::cli
