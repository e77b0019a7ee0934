#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cria {

// How a checkpoint stores numbers: one by one, or, under ggml's names, as blocks that are quantized
// together.
enum class ElementType : uint8_t {
  kF32,
  kF16,
  kBf16,
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
};
inline constexpr int kNumElementTypes = 14;

// What is stored together. Numbers by themselves are blocks of one.
struct StoredBlock {
  size_t elements;
  size_t bytes;
};
StoredBlock BlockOf(ElementType type);

// "Q4_K"
std::string_view ElementTypeName(ElementType type);

// Turns whole blocks into floats; `raw` may lie unaligned and holds as many blocks as
// `destination` has room for. A block that has an infinity or NaN for its scale gives some.
// Formulas: the structs `block_*` and functions `dequantize_row_*` of ggml.
void Dequantize(ElementType type, const std::byte* raw, std::span<float> destination);

}  // namespace cria
