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

// Most functions here handle eight codes at once, as the bytes of a number.

uint64_t Eight(const uint8_t* bytes) {
  uint64_t eight;
  std::memcpy(&eight, bytes, sizeof eight);
  return eight;
}

// A byte in each of the eight bytes.
constexpr uint64_t InEach(uint8_t byte) { return byte * uint64_t{0x0101010101010101}; }

// `bits` bits of each byte, from bit `first` on.
constexpr uint64_t BitsOfEach(uint64_t eight, unsigned first, unsigned bits) {
  return eight >> first & InEach(static_cast<uint8_t>((1u << bits) - 1));
}

// The eight bits of `byte` as numbers, the lowest in the first byte.
constexpr uint64_t SpreadBits(uint8_t byte) {
  const uint64_t own_bit_of_each = InEach(byte) & 0x8040201008040201;
  return BitsOfEach(own_bit_of_each + InEach(0x7f), 7, 1);
}

// Stores the codes of `count` inputs; `codes_from(i)` are those of the eight from input `i` on.
template <typename CodesFrom>
void FillCodes(uint8_t* codes, size_t count, const CodesFrom& codes_from) {
  for (size_t i = 0; i < count; i += 8) {
    const uint64_t eight = codes_from(i);
    std::memcpy(codes + i, &eight, sizeof eight);
  }
}

// Codes of a block of 32: the low nibbles of the 16 bytes are the first 16 codes, the high nibbles
// the others.
uint64_t HalfNibbles(const uint8_t* bytes, size_t i) {
  return BitsOfEach(Eight(bytes + i % 16), i < 16 ? 0u : 4u, 4);
}

// The two-bit codes from input `i` on of a block of 256: each half has 32 bytes, and each pair of
// bits in these bytes belongs to 32 consecutive inputs.
uint64_t TwoBits(const uint8_t* codes, size_t i) {
  return BitsOfEach(Eight(codes + i / 128 * 32 + i % 32), i % 128 / 32 * 2, 2);
}

// The four-bit codes from input `i` on of a block of 256: 64 inputs share 32 bytes.
uint64_t FourBits(const uint8_t* codes, size_t i) {
  return BitsOfEach(Eight(codes + i / 64 * 32 + i % 32), i % 64 / 32 * 4, 4);
}

// The one-bit codes from input `i` on of a block of 256: bit `i / 32` of byte `i % 32`.
uint64_t OneBit(const uint8_t* bits, size_t i) {
  return BitsOfEach(Eight(bits + i % 32), static_cast<unsigned>(i / 32), 1);
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
  if (!has_fifth_bit) {
    return FillCodes(numbers.codes, 32, [&](size_t i) { return HalfNibbles(stored, i); });
  }
  FillCodes(numbers.codes, 32,
            [&](size_t i) { return HalfNibbles(stored + 4, i) | SpreadBits(stored[i / 8]) << 4; });
}

// scales[16], codes[64], scale, scale of minimums; each byte of scales has both for 16 inputs.
void ReadQ2K(const uint8_t* stored, BlockNumbers& numbers) {
  for (size_t group = 0; group < 16; ++group) {
    numbers.group_scales[group] = static_cast<int8_t>(stored[group] & 15);
    numbers.group_minimums[group] = stored[group] >> 4;
  }
  FillCodes(numbers.codes, 256, [&](size_t i) { return TwoBits(stored + 16, i); });
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
  FillCodes(numbers.codes, 256,
            [&](size_t i) { return TwoBits(stored + 32, i) | OneBit(stored, i) << 2; });
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
  FillCodes(numbers.codes, 256, [&](size_t i) {
    return FourBits(codes, i) | (has_fifth_bit ? OneBit(stored + 16, i) << 4 : 0);
  });
}

// low bits[128], high bits[64], scales[16], scale. Each half of the inputs has 64 bytes of low
// bits; its first 64 inputs have the low nibbles.
void ReadQ6K(const uint8_t* stored, BlockNumbers& numbers) {
  std::memcpy(numbers.group_scales, stored + 192, 16);
  FillCodes(numbers.codes, 256, [&](size_t i) {
    const uint64_t low = BitsOfEach(Eight(stored + i / 128 * 64 + i % 64), i % 128 / 64 * 4, 4);
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
  }
  FillCodes(numbers.codes, 256,
            [&](size_t i) { return HalfNibbles(stored + 8 + i / 32 * 16, i % 32); });
  numbers.scale = Word(stored);
}

// exponent, codes[16]. The scale is halved, because numbers of codes are doubled. It would be
// denormal if the exponent is 0 or 1, and is then zero: such weights are less than 1e-36.
void ReadMxfp4(const uint8_t* stored, BlockNumbers& numbers) {
  constexpr uint8_t kNotANumber = 255;
  const unsigned exponent = stored[0];
  const unsigned halved = exponent == kNotANumber ? exponent : exponent - (exponent != 0);
  numbers.scale = static_cast<uint16_t>(halved << kBf16MantissaBits);
  FillCodes(numbers.codes, 32, [&](size_t i) { return HalfNibbles(stored + 1, i); });
}

// scale, minimum, planes of codes: each byte of a plane has bits of inputs that are as far from
// each other as the plane has bytes.
void ReadPlanes(const uint8_t* stored, const BlockFormat& format, BlockNumbers& numbers) {
  numbers.scale = Word(stored);
  numbers.minimum = Word(stored + 2);
  const uint8_t* const planes = stored + 4;
  FillCodes(numbers.codes, format.inputs, [&](size_t i) {
    uint64_t codes = 0;
    const uint8_t* plane = planes;
    for (unsigned done = 0; done < format.code_bits;) {
      const unsigned bits = PlaneBits(format.code_bits - done);
      const size_t bytes = format.inputs * bits / 8;
      const auto shift = static_cast<unsigned>(i / bytes * bits);
      codes |= BitsOfEach(Eight(plane + i % bytes), shift, bits) << done;
      plane += bytes;
      done += bits;
    }
    return codes;
  });
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
