#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cria::support {

// Approximately normal numbers, mean 0 and deviation 1, cut at 3.46 deviations. They are made from
// integers alone, so that they are the same on every machine, and each from its index alone, so
// that any stretch of a long sequence can be made by itself.
//
// `values[i]` becomes number `first + i` of the sequence `seed`.
void FillNormal(uint64_t seed, uint64_t first, std::span<float> values);

// The seed of a named sequence among those of `seed`.
uint64_t SeedFor(uint64_t seed, std::string_view name);

}  // namespace cria::support
