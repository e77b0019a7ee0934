#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weights/block_format.h"

namespace cria {

// How a checkpoint stores numbers: single numbers, or, with ggml's names, blocks of numbers that
// are quantized together.
enum class ElementType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kU8,  // Codes, or exponents of scales, of MXFP4 in Hugging Face's files.
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
  kMxfp4,
};
inline constexpr int kNumElementTypes = 17;

// The numbers that are stored together; single numbers are blocks of one.
struct StoredBlock {
  size_t elements;
  size_t bytes;
};
StoredBlock BlockOf(ElementType type);

// Null for single numbers.
const BlockFormat* BlockFormatOf(ElementType type);

// "Q4_K"
std::string_view ElementTypeName(ElementType type);

// Converts whole blocks to floats. `raw` need not be aligned and must have as many blocks as
// `destination` has room for. Blocks with an infinite or NaN scale give infinities or NaNs.
void Dequantize(ElementType type, const std::byte* raw, std::span<float> destination);

}  // namespace cria
