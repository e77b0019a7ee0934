#pragma once

#include <bit>
#include <cstdint>

namespace cria {

// bfloat16 is the upper half of a float.
constexpr float Bf16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

// Rounds to nearest, ties to even; a NaN stays one.
constexpr uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  const uint32_t odd = (bits >> 16) & 1;
  return static_cast<uint16_t>((bits + 0x7fff + odd) >> 16);
}

// IEEE 754 binary16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits.
constexpr float F16ToFloat(uint16_t value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000) << 16;
  const uint32_t exponent = (value >> 10) & 0x1f;
  const uint32_t fraction = value & 0x3ff;
  if (exponent == 0) {
    // Zero or subnormal: fraction * 2^-24, exact in a float.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t float_exponent = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | float_exponent << 23 | fraction << 13);
}

// Rounds to nearest, ties to even; too large becomes infinity; a NaN stays one.
constexpr uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // 2^16 and more.
  if (magnitude < 0x38800000) {
    // Below 2^-14: added to 0.5, whose last bit is worth 2^-24, the sum rounds as a subnormal does.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t rounded = magnitude + 0xfff + odd - (uint32_t{127 - 15} << 23);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

}  // namespace cria
