#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace cria::ops {

// Normally distributed, the same for the same seed. The vector has exactly `size` elements of its
// own, so that a sanitizer sees an access past its end.
inline std::vector<float> RandomFloats(size_t size, unsigned seed, float deviation = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(size);
  for (float& value : values) value = normal(generator);
  return values;
}

// Returns RandomFloats(size, seed). The numbers of each seed are kept, because setting up a
// generator takes longer than making a short row, and tests make millions of rows of the same few
// thousand seeds.
inline std::vector<float> RandomRow(size_t size, size_t seed) {
  static std::vector<std::vector<float>> rows;
  if (rows.size() <= seed) rows.resize(seed + 1);
  std::vector<float>& row = rows[seed];
  if (row.size() < size) row = RandomFloats(size, static_cast<unsigned>(seed));
  return {row.begin(), row.begin() + static_cast<ptrdiff_t>(size)};
}

// Lengths around every vector width and unrolling, and one of a real model.
inline constexpr size_t kTrickySizes[] = {1,  2,  3,  4,  5,  7,  8,  9,   15,  16,  17,
                                          31, 32, 33, 63, 64, 65, 67, 127, 130, 576, 2048};

}  // namespace cria::ops
