#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/numeric.h"
#include "weights/block_format.h"
#include "weights/block_reference.h"

namespace cria::support {

// f16 of either sign, 2^-10 to 2^-5 in magnitude.
inline uint16_t ModerateHalf(std::mt19937& random) {
  return static_cast<uint16_t>((random() % 2 << 15) | ((5 + random() % 5) << 10) | random() % 1024);
}

// Replaces the scales of blocks by what `half(random)` returns in f16.
template <typename Half>
void SetScales(const BlockFormat& format, std::mt19937& random, const Half& half,
               std::vector<std::byte>& blocks) {
  for (size_t begin = 0; begin < blocks.size(); begin += format.bytes) {
    for (const size_t offset : ScaleOffsets(format)) {
      uint16_t scale = half(random);
      if (format.scale_type == BlockScaleType::kE8m0) {
        // The exponent alone.
        blocks[begin + offset] = static_cast<std::byte>((scale >> 10 & 31) + 127 - 15);
        continue;
      }
      if (format.scale_type == BlockScaleType::kBf16) scale = FloatToBf16(F16ToFloat(scale));
      std::memcpy(&blocks[begin + offset], &scale, sizeof scale);
    }
  }
}

// So many blocks of a format, with random codes and such scales.
template <typename Half = uint16_t (*)(std::mt19937&)>
std::vector<std::byte> RandomBlocks(const BlockFormat& format, size_t num_blocks,
                                    std::mt19937& random, const Half& half = ModerateHalf) {
  std::vector<std::byte> blocks(num_blocks * format.bytes);
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
  SetScales(format, random, half, blocks);
  return blocks;
}

}  // namespace cria::support
