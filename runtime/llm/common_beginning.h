#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cria {

// How many tokens both begin with.
inline size_t CommonBeginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace cria
