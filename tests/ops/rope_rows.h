#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "ops/kv_cache_view.h"

namespace cria::ops {

// The angle of pair i at a position, as of a rope with the base 10000.
inline double RopeAngle(size_t position, size_t i, size_t rotary_dim) {
  const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim);
  return static_cast<double>(position) * std::pow(10000.0, exponent);
}

// The rows of a rope table for positions [begin, end).
struct RopeRows {
  RopeRows(size_t begin, size_t end, size_t rotary_dim) {
    for (size_t position = begin; position < end; ++position) {
      for (size_t i = 0; i < rotary_dim / 2; ++i) {
        const double angle = RopeAngle(position, i, rotary_dim);
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  std::vector<float> cosines, sines;
};

// The first `rotary_dim` channels of `row` at `position`, in double precision.
inline std::vector<double> Rotated(std::vector<double> row, size_t position, size_t rotary_dim) {
  const size_t half = rotary_dim / 2;
  for (size_t i = 0; i < half; ++i) {
    const double angle = RopeAngle(position, i, rotary_dim);
    const double a = row[i], b = row[half + i];
    row[i] = a * std::cos(angle) - b * std::sin(angle);
    row[half + i] = a * std::sin(angle) + b * std::cos(angle);
  }
  return row;
}

// The offset of a head's keys at `position`, of a cache whose rope table is RopeRows.
inline std::vector<double> OffsetOf(const KvCacheView& cache, size_t head, size_t position) {
  std::vector<double> offset;
  for (size_t at = head * cache.head_dim; at < (head + 1) * cache.head_dim; ++at) {
    const double row = static_cast<double>(position % kKvPageTokens) - 31.5;
    offset.push_back(cache.key_offsets.middles[at] + row * cache.key_offsets.slopes[at]);
  }
  if (cache.key_offsets.cosines == nullptr) return offset;
  return Rotated(offset, position / kKvPageTokens * kKvPageTokens, cache.rotary_channels());
}

}  // namespace cria::ops
