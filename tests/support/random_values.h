#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cria::support {

// Sets `values[i]` to number `first + i` of the sequence `seed`: approximately normal numbers with
// mean 0 and standard deviation 1, limited to 3.46 deviations. They are computed with integers, so
// they are the same on every machine, and each from its index, so any part of a long sequence can
// be made alone.
void FillNormal(uint64_t seed, uint64_t first, std::span<float> values);

// The seed of a sequence with a name; different names give different sequences.
uint64_t SeedFor(uint64_t seed, std::string_view name);

}  // namespace cria::support
