#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "weights/block_format.h"
#include "weights/ggml_reference.h"

namespace cria::support {

// Writes scales of either sign to blocks, f16 of 2^-10 to 2^-5.
inline void SetRandomScales(const BlockFormat& format, std::mt19937& random,
                            std::vector<std::byte>& blocks) {
  const auto known = std::ranges::find(GgmlBlocks(), format.name, &GgmlBlock::name);
  for (size_t begin = 0; begin < blocks.size(); begin += format.bytes) {
    for (const size_t offset : known->scales) {
      const auto half = static_cast<uint16_t>((random() % 2 << 15) | ((5 + random() % 5) << 10) |
                                              random() % 1024);
      std::memcpy(&blocks[begin + offset], &half, sizeof half);
    }
  }
}

// So many blocks of a format, with random codes.
inline std::vector<std::byte> RandomBlocks(const BlockFormat& format, size_t num_blocks,
                                           std::mt19937& random) {
  std::vector<std::byte> blocks(num_blocks * format.bytes);
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
  SetRandomScales(format, random, blocks);
  return blocks;
}

}  // namespace cria::support
