#pragma once

#include <cstdint>
#include <string_view>

namespace cria {

// How a matrix's numbers are stored: three schemes with XNNPACK's names; the block formats of GGML
// with GGML's names, whose codes a file of another program may already have; and blocks that the
// converter makes, w and the bits of a weight, g and the weights of a block. The values are those
// of schema/model.fbs.
enum class Scheme : uint8_t {
  kF32,   // Row-major float.
  kQc8w,  // int8, one float scale per output channel.
  kQb4w,  // int4 + 8, two per byte with the even input in the low nibble, one bf16 scale per block.
  // Rows of blocks; see BlockFormat.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2K,
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
  kIq4Nl,
  kIq4Xs,
  kW2G64,
  kW3G64,
  kW4G64,
  kW5G64,
  kW6G64,
  // GGML's, and the Open Compute Project's, whose codes Hugging Face's files have.
  kMxfp4,
};
inline constexpr int kNumSchemes = 21;
// The schemes that XNNPACK has are the first ones.
inline constexpr int kNumXnnpackSchemes = 3;

// "qb4w", "Q4_K"
std::string_view SchemeName(Scheme scheme);

}  // namespace cria
