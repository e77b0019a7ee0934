#pragma once

#include <cstddef>

#include "converter/quantize/scale_search.h"

namespace cria {

// A fixed number of partial sums, so that the order of additions is the same on every machine.
static_assert(kScaleSearchLanes == 8);
using Lanes [[gnu::vector_size(kScaleSearchLanes * sizeof(float))]] = float;

[[gnu::always_inline]] inline float SumLanes(const Lanes& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Replaces values by their codes; as CodeOf, which takes no vectors.
[[gnu::always_inline]] inline void RoundToCodes(Lanes& values, float inverse_scale,
                                                CodeRange range) {
  const Lanes min = Lanes{} + range.min;
  const Lanes max = Lanes{} + range.max;
  values = values * inverse_scale;
  values = values < min ? min : values;
  values = max < values ? max : values;
  values = (values + kIntegerRounder) - kIntegerRounder;
}

}  // namespace cria
