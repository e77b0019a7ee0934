#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/block_format.h"

namespace cria {

// Bits of a bf16 below its exponent; a scale of MXFP4 is an exponent alone.
inline constexpr unsigned kBf16MantissaBits = 7;

// The integers of a block, one for each place where the block has one.
struct BlockNumbers {
  uint8_t codes[kMaxBlockInputs] = {};  // The bytes of int8 codes.
  // f16 if the format has scales in f16, otherwise bf16. `minimum` is what is subtracted, so its
  // sign is not always the stored one.
  uint16_t scale = 0;
  uint16_t minimum = 0;
  int8_t group_scales[kMaxBlockGroups] = {};  // 1 in a format without them, like the next one.
  uint8_t group_minimums[kMaxBlockGroups] = {};
};

// Takes a stored block apart; it need not be aligned. Formulas of GGML's formats: the structs
// `block_*` and the functions `dequantize_row_*` of ggml.
void ReadBlock(const BlockFormat& format, const std::byte* stored, BlockNumbers& numbers);

// Computes as many weights as `weights` has, which need not be all of the last block: exactly as
// ggml does, except that weights of MXFP4 below 1e-36 are zero. An infinite or NaN scale gives
// infinities or NaNs.
void DequantizeBlocks(const BlockFormat& format, const std::byte* stored, std::span<float> weights);

}  // namespace cria
