#include "weights/block_numbers.h"

#include <algorithm>
#include <cstring>

#include "core/numeric.h"

namespace cria {
namespace {

// Threads of a pool flush denormals to zero, so no computation here may have any. A half is never
// denormal as a float, also after multiplication by an integer.

uint16_t Word(const uint8_t* bytes) {
  uint16_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Blocks of 32: the low nibbles of the 16 bytes are the first 16 codes, the high nibbles the
// others.
void ReadNibbles(const uint8_t* bytes, uint8_t* codes) {
  for (size_t i = 0; i < 16; ++i) {
    codes[i] = bytes[i] & 15;
    codes[16 + i] = bytes[i] >> 4;
  }
}

// The two-bit code of input `i` of a block of 256: each half has 32 bytes, and each pair of bits in
// these bytes belongs to 32 consecutive inputs.
unsigned TwoBits(const uint8_t* codes, size_t i) {
  return codes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3u;
}

// The four-bit code of input `i` of a block of 256: 64 inputs share 32 bytes.
unsigned FourBits(const uint8_t* codes, size_t i) {
  return codes[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15u;
}

// The one-bit code of input `i` of a block of 256: bit `i / 32` of byte `i % 32`.
unsigned OneBit(const uint8_t* bits, size_t i) { return bits[i % 32] >> (i / 32) & 1u; }

template <typename CodeOf>
void FillCodes(BlockNumbers& numbers, const CodeOf& code_of) {
  for (size_t i = 0; i < kMaxBlockInputs; ++i) numbers.codes[i] = static_cast<uint8_t>(code_of(i));
}

// scale, fifth bits[4] if there are any, codes[16].
void ReadQ4Or5(const uint8_t* stored, bool has_minimum, bool has_fifth_bit, BlockNumbers& numbers) {
  constexpr uint16_t kSign = 0x8000;
  numbers.scale = Word(stored);
  stored += 2;
  if (has_minimum) {
    // GGML adds it.
    numbers.minimum = Word(stored) ^ kSign;
    stored += 2;
  }
  uint32_t fifth_bits = 0;
  if (has_fifth_bit) {
    std::memcpy(&fifth_bits, stored, sizeof fifth_bits);
    stored += 4;
  }
  ReadNibbles(stored, numbers.codes);
  for (size_t i = 0; i < 32; ++i) numbers.codes[i] |= (fifth_bits >> i & 1u) << 4;
}

// scales[16], codes[64], scale, scale of minimums; each byte of scales has both for 16 inputs.
void ReadQ2K(const uint8_t* stored, BlockNumbers& numbers) {
  for (size_t group = 0; group < 16; ++group) {
    numbers.group_scales[group] = static_cast<int8_t>(stored[group] & 15);
    numbers.group_minimums[group] = stored[group] >> 4;
  }
  FillCodes(numbers, [&](size_t i) { return TwoBits(stored + 16, i); });
  numbers.scale = Word(stored + 80);
  numbers.minimum = Word(stored + 82);
}

// high bits[32], codes[64], scales[12], scale. Of the 16 scales with six bits, the low four bits
// are nibbles of eight bytes, and the upper two are pairs of bits in the last four bytes.
void ReadQ3K(const uint8_t* stored, BlockNumbers& numbers) {
  const uint8_t* const scales = stored + 96;
  for (size_t group = 0; group < 16; ++group) {
    const int low = scales[group % 8] >> (group / 8 * 4) & 15;
    const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    numbers.group_scales[group] = static_cast<int8_t>((low | high << 4) - 32);
  }
  FillCodes(numbers, [&](size_t i) { return TwoBits(stored + 32, i) + 4 * OneBit(stored, i); });
  numbers.scale = Word(stored + 108);
}

// scale, scale of minimums, scales[12], fifth bits[32] if there are any, codes[128]. The scales and
// minimums have six bits. Those of the first four groups are the low bits of eight bytes. Of the
// others, the low four bits share four bytes, and the upper two bits are the upper two bits of the
// first eight bytes.
void ReadQ4KOr5K(const uint8_t* stored, bool has_fifth_bit, BlockNumbers& numbers) {
  numbers.scale = Word(stored);
  numbers.minimum = Word(stored + 2);
  const uint8_t* const packed = stored + 4;
  for (size_t group = 0; group < 4; ++group) {
    numbers.group_scales[group] = static_cast<int8_t>(packed[group] & 63);
    numbers.group_minimums[group] = packed[group + 4] & 63;
    const uint8_t both = packed[group + 8];
    numbers.group_scales[group + 4] = static_cast<int8_t>((both & 15) | packed[group] >> 6 << 4);
    numbers.group_minimums[group + 4] =
        static_cast<uint8_t>(both >> 4 | packed[group + 4] >> 6 << 4);
  }
  const uint8_t* const codes = stored + (has_fifth_bit ? 48 : 16);
  FillCodes(numbers, [&](size_t i) {
    return FourBits(codes, i) | (has_fifth_bit ? OneBit(stored + 16, i) << 4 : 0u);
  });
}

// low bits[128], high bits[64], scales[16], scale. Each half of the inputs has 64 bytes of low
// bits; its first 64 inputs have the low nibbles.
void ReadQ6K(const uint8_t* stored, BlockNumbers& numbers) {
  std::memcpy(numbers.group_scales, stored + 192, 16);
  FillCodes(numbers, [&](size_t i) {
    const unsigned low = stored[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15u;
    return low | TwoBits(stored + 128, i) << 4;
  });
  numbers.scale = Word(stored + 208);
}

// scale, upper two bits of the eight scales, low nibbles of the scales[4], codes[128].
void ReadIq4Xs(const uint8_t* stored, BlockNumbers& numbers) {
  const uint16_t upper_bits = Word(stored + 2);
  for (size_t group = 0; group < 8; ++group) {
    const int low = stored[4 + group / 2] >> (group % 2 * 4) & 15;
    const int high = upper_bits >> (group * 2) & 3;
    numbers.group_scales[group] = static_cast<int8_t>((low | high << 4) - 32);
    ReadNibbles(stored + 8 + group * 16, numbers.codes + group * 32);
  }
  numbers.scale = Word(stored);
}

// exponent, codes[16]. The scale is halved, because numbers of codes are doubled. It would be
// denormal if the exponent is 0 or 1, and is then zero: such weights are less than 1e-36.
void ReadMxfp4(const uint8_t* stored, BlockNumbers& numbers) {
  constexpr uint8_t kNotANumber = 255;
  const unsigned exponent = stored[0];
  const unsigned halved = exponent == kNotANumber ? exponent : exponent - (exponent != 0);
  numbers.scale = static_cast<uint16_t>(halved << kBf16MantissaBits);
  ReadNibbles(stored + 1, numbers.codes);
}

// scale, minimum, planes of codes.
void ReadPlanes(const uint8_t* stored, const BlockFormat& format, BlockNumbers& numbers) {
  numbers.scale = Word(stored);
  numbers.minimum = Word(stored + 2);
  const uint8_t* plane = stored + 4;
  std::fill_n(numbers.codes, format.inputs, uint8_t{0});
  for (unsigned done = 0; done < format.code_bits;) {
    const unsigned bits = PlaneBits(format.code_bits - done);
    const size_t bytes = format.inputs * bits / 8;
    uint8_t* code = numbers.codes;
    for (unsigned shift = 0; shift < 8; shift += bits) {
      for (size_t i = 0; i < bytes; ++i) {
        const unsigned part = plane[i] >> shift & ((1u << bits) - 1);
        *code++ |= static_cast<uint8_t>(part << done);
      }
    }
    plane += bytes;
    done += bits;
  }
}

}  // namespace

void ReadBlock(const BlockFormat& format, const std::byte* stored, BlockNumbers& numbers) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(stored);
  numbers.minimum = 0;
  if (format.group_scales == GroupScales::kNone) {
    numbers.group_scales[0] = 1;
    numbers.group_minimums[0] = 1;
  }
  switch (format.scheme) {
    case Scheme::kQ4_0:
    case Scheme::kQ4_1:
    case Scheme::kQ5_0:
    case Scheme::kQ5_1:
    case Scheme::kIq4Nl:
      return ReadQ4Or5(bytes, format.has_minimum, format.code_bits == 5, numbers);
    case Scheme::kQ8_0:
      numbers.scale = Word(bytes);
      std::memcpy(numbers.codes, bytes + 2, 32);
      return;
    case Scheme::kQ2K:
      return ReadQ2K(bytes, numbers);
    case Scheme::kQ3K:
      return ReadQ3K(bytes, numbers);
    case Scheme::kQ4K:
      return ReadQ4KOr5K(bytes, false, numbers);
    case Scheme::kQ5K:
      return ReadQ4KOr5K(bytes, true, numbers);
    case Scheme::kQ6K:
      return ReadQ6K(bytes, numbers);
    case Scheme::kIq4Xs:
      return ReadIq4Xs(bytes, numbers);
    case Scheme::kW2G64:
    case Scheme::kW3G64:
    case Scheme::kW4G64:
    case Scheme::kW5G64:
    case Scheme::kW6G64:
      return ReadPlanes(bytes, format, numbers);
    case Scheme::kMxfp4:
      return ReadMxfp4(bytes, numbers);
    case Scheme::kF32:
    case Scheme::kQc8w:
    case Scheme::kQb4w:
      return;
  }
}

void DequantizeBlocks(const BlockFormat& format, const std::byte* stored,
                      std::span<float> weights) {
  BlockNumbers numbers;
  const auto number_of = [&](uint8_t code) {
    if (format.codebook != Codebook::kNone) {
      return static_cast<int>(NumbersOf(format.codebook)[code]);
    }
    if (format.code_bits == 8) return static_cast<int>(static_cast<int8_t>(code));
    return static_cast<int>(code) - format.zero_point;
  };
  const auto float_of = [&](uint16_t half) {
    return format.scale_type == BlockScaleType::kF16 ? F16ToFloat(half) : Bf16ToFloat(half);
  };
  for (size_t first = 0; first < weights.size(); first += format.inputs, stored += format.bytes) {
    ReadBlock(format, stored, numbers);
    const size_t count = std::min<size_t>(format.inputs, weights.size() - first);
    const float scale = float_of(numbers.scale);
    const float minimum = float_of(numbers.minimum);
    for (size_t group = 0; group < format.groups(); ++group) {
      const float group_scale = scale * static_cast<float>(numbers.group_scales[group]);
      const float group_minimum = minimum * static_cast<float>(numbers.group_minimums[group]);
      const size_t begin = group * format.group_inputs;
      for (size_t i = begin; i < std::min<size_t>(begin + format.group_inputs, count); ++i) {
        const float product = group_scale * static_cast<float>(number_of(numbers.codes[i]));
        weights[first + i] = format.has_minimum ? product - group_minimum : product;
      }
    }
  }
}

}  // namespace cria
