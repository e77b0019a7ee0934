#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ops/kv_cache_view.h"

namespace cria::ops {

// By how much pair i turns from one position to the next, as of a rope with the base 10000. What
// was computed is kept, because powers take emulators long.
inline double RopeFrequency(size_t i, size_t rotary_dim) {
  static std::map<size_t, std::vector<double>> frequencies;
  std::vector<double>& of_dim = frequencies[rotary_dim];
  while (of_dim.size() <= i) {
    of_dim.push_back(std::pow(
        10000.0, -2.0 * static_cast<double>(of_dim.size()) / static_cast<double>(rotary_dim)));
  }
  return of_dim[i];
}

// The angle of pair i at a position.
inline double RopeAngle(size_t position, size_t i, size_t rotary_dim) {
  return static_cast<double>(position) * RopeFrequency(i, rotary_dim);
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

// Pairs of each of `num_heads` heads that turn with the rope of RopeRows: the first and the last of
// those that there are, or one.
struct TurnedPairs {
  TurnedPairs(size_t num_heads, size_t rotary_dim)
      : pairs(num_heads * KeyOffsets::kMaxTurnedPairs) {
    const size_t half = rotary_dim / 2;
    for (size_t head = 0; head < num_heads && half > 0; ++head) {
      TurnedPair* const first = &pairs[head * KeyOffsets::kMaxTurnedPairs];
      const float size = static_cast<float>(head + 1);
      first[0] = {.index = 0, .a = 7.0f * size, .b = -3.0f};
      if (half > 1) first[1] = {.index = static_cast<uint32_t>(half - 1), .a = 2.0f, .b = size};
    }
    for (size_t i = 0; i < half; ++i) {
      for (size_t row = 0; row < kKvPageTokens; ++row) {
        row_turns.push_back(static_cast<float>(std::cos(RopeAngle(row, i, rotary_dim))));
      }
      for (size_t row = 0; row < kKvPageTokens; ++row) {
        row_turns.push_back(static_cast<float>(std::sin(RopeAngle(row, i, rotary_dim))));
      }
    }
  }
  std::vector<TurnedPair> pairs;
  std::vector<float> row_turns;
};

// The offset of a head's keys at `position`, of a cache whose rope table is RopeRows.
inline std::vector<double> OffsetOf(const KvCacheView& cache, size_t head, size_t position) {
  std::vector<double> offset;
  for (size_t at = head * cache.head_dim; at < (head + 1) * cache.head_dim; ++at) {
    const double row = static_cast<double>(position % kKvPageTokens) - 31.5;
    offset.push_back(cache.key_offsets.middles[at] + row * cache.key_offsets.slopes[at]);
  }
  if (cache.key_offsets.cosines == nullptr) return offset;
  offset = Rotated(offset, position / kKvPageTokens * kKvPageTokens, cache.rotary_channels());
  if (cache.key_offsets.turned_pairs == nullptr) return offset;
  std::vector<double> turned(cache.head_dim);
  for (size_t i = 0; i < KeyOffsets::kMaxTurnedPairs; ++i) {
    const TurnedPair& pair = cache.key_offsets.turned_pairs[head * KeyOffsets::kMaxTurnedPairs + i];
    if (pair.index == TurnedPair::kNone) break;
    turned[pair.index] = double{pair.a};
    turned[pair.index + cache.rotary_channels() / 2] = double{pair.b};
  }
  turned = Rotated(turned, position, cache.rotary_channels());
  for (size_t j = 0; j < offset.size(); ++j) offset[j] += turned[j];
  return offset;
}

}  // namespace cria::ops
