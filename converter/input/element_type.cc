#include "converter/input/element_type.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/numeric.h"

namespace cria {
namespace {

// Threads of a pool flush denormals to zero, so no computation here may have any. A half is never
// denormal as a float, also after multiplication by an integer.

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

float Half(const uint8_t* bytes) { return F16ToFloat(Load<uint16_t>(bytes)); }

float F32(const uint8_t* bytes) { return std::bit_cast<float>(Load<uint32_t>(bytes)); }
float Bf16(const uint8_t* bytes) { return Bf16ToFloat(Load<uint16_t>(bytes)); }

template <float (*kConvert)(const uint8_t*)>
void One(const uint8_t* raw, float* values) {
  *values = kConvert(raw);
}

// Blocks of 32: the low nibbles of the 16 bytes `codes` are the first 16 codes, the high nibbles
// the others. `kOffset` is subtracted from each. With `kHasMinimum`, a second half is added to each
// product. Fifth bits of codes are in a word before the codes.
template <bool kHasMinimum, bool kHasFifthBit, int kOffset>
void Nibbles(const uint8_t* raw, float* values) {
  const float scale = Half(raw);
  raw += 2;
  float minimum = 0.0f;
  if constexpr (kHasMinimum) {
    minimum = Half(raw);
    raw += 2;
  }
  uint32_t fifth_bits = 0;
  if constexpr (kHasFifthBit) {
    fifth_bits = Load<uint32_t>(raw);
    raw += 4;
  }
  for (size_t i = 0; i < 32; ++i) {
    const int nibble = i < 16 ? raw[i] & 15 : raw[i - 16] >> 4;
    const int code = nibble | static_cast<int>((fifth_bits >> i) & 1) << 4;
    const float product = scale * static_cast<float>(code - kOffset);
    values[i] = kHasMinimum ? product + minimum : product;
  }
}

void Q8_0(const uint8_t* raw, float* values) {
  const float scale = Half(raw);
  for (size_t i = 0; i < 32; ++i) {
    values[i] = scale * static_cast<float>(static_cast<int8_t>(raw[2 + i]));
  }
}

// The 32 elements whose codes are the nibbles of 16 bytes, as numbers of ggml's codebook.
void FromCodebook(float scale, const uint8_t* codes, float* values) {
  static constexpr std::array<int8_t, 16> kCodebook = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                       1,    13,   25,  38,  53,  69,  89,  113};
  for (size_t i = 0; i < 16; ++i) {
    values[i] = scale * static_cast<float>(kCodebook[codes[i] & 15]);
    values[16 + i] = scale * static_cast<float>(kCodebook[codes[i] >> 4]);
  }
}

void Iq4Nl(const uint8_t* raw, float* values) { FromCodebook(Half(raw), raw + 2, values); }

// scale, upper two bits of the eight scales, low nibbles of the scales[4], codes[128].
void Iq4Xs(const uint8_t* raw, float* values) {
  const float scale = Half(raw);
  const auto upper_bits = Load<uint16_t>(raw + 2);
  for (size_t group = 0; group < 8; ++group) {
    const int low = raw[4 + group / 2] >> (group % 2 * 4) & 15;
    const int high = upper_bits >> (group * 2) & 3;
    const float factor = scale * static_cast<float>((low | high << 4) - 32);
    FromCodebook(factor, raw + 8 + group * 16, values + group * 32);
  }
}

// The two-bit code of element `i` of a superblock of 256: each half has 32 bytes, and each pair of
// bits in these bytes belongs to 32 consecutive elements.
int TwoBits(const uint8_t* codes, size_t i) {
  return codes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

// The same for four bits: 64 elements share 32 bytes.
int FourBits(const uint8_t* codes, size_t i) {
  return codes[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

// Bit `i / 32` of byte `i % 32`.
int OneBit(const uint8_t* bits, size_t i) { return bits[i % 32] >> (i / 32) & 1; }

// scales[16], codes[64], scale, scale of minima; each byte of scales has both for 16 elements.
void Q2K(const uint8_t* raw, float* values) {
  const float scale = Half(raw + 80);
  const float minimum_scale = Half(raw + 82);
  for (size_t i = 0; i < 256; ++i) {
    const uint8_t both = raw[i / 16];
    const float factor = scale * static_cast<float>(both & 15);
    const float minimum = minimum_scale * static_cast<float>(both >> 4);
    values[i] = factor * static_cast<float>(TwoBits(raw + 16, i)) - minimum;
  }
}

// high bits[32], codes[64], scales[12], scale. Of the 16 scales with six bits, the low four bits
// are nibbles of eight bytes, and the upper two are pairs of bits in the last four bytes.
void Q3K(const uint8_t* raw, float* values) {
  const uint8_t* scales = raw + 96;
  const float scale = Half(raw + 108);
  for (size_t group = 0; group < 16; ++group) {
    const int low = scales[group % 8] >> (group / 8 * 4) & 15;
    const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    const float factor = scale * static_cast<float>((low | high << 4) - 32);
    for (size_t i = group * 16; i < group * 16 + 16; ++i) {
      const int code = TwoBits(raw + 32, i) + 4 * OneBit(raw, i) - 4;
      values[i] = factor * static_cast<float>(code);
    }
  }
}

// Scale and minimum of group `group` of eight, each of six bits. Those of the first four groups are
// the low bits of eight bytes. Of the others, the low four bits share four bytes, and the upper two
// bits are the upper two bits of the first eight bytes.
struct SixBitPair {
  int scale;
  int minimum;
};
SixBitPair UnpackPair(const uint8_t* packed, size_t group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | packed[group - 4] >> 6 << 4,
          packed[group + 4] >> 4 | packed[group] >> 6 << 4};
}

// scale, scale of minima, scales[12], fifth bits[32] if there are any, codes[128].
template <bool kHasFifthBit>
void Q4KOrQ5K(const uint8_t* raw, float* values) {
  const float scale = Half(raw);
  const float minimum_scale = Half(raw + 2);
  const uint8_t* codes = raw + (kHasFifthBit ? 48 : 16);
  for (size_t group = 0; group < 8; ++group) {
    const SixBitPair pair = UnpackPair(raw + 4, group);
    const float factor = scale * static_cast<float>(pair.scale);
    const float minimum = minimum_scale * static_cast<float>(pair.minimum);
    for (size_t i = group * 32; i < group * 32 + 32; ++i) {
      int code = FourBits(codes, i);
      if constexpr (kHasFifthBit) code |= OneBit(raw + 16, i) << 4;
      values[i] = factor * static_cast<float>(code) - minimum;
    }
  }
}

// low bits[128], high bits[64], scales[16], scale. Each half of the elements has 64 bytes of low
// bits; its first 64 elements have the low nibbles.
void Q6K(const uint8_t* raw, float* values) {
  const float scale = Half(raw + 208);
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128;
    const int low = raw[half * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int code = (low | TwoBits(raw + 128, i) << 4) - 32;
    const float factor = scale * static_cast<float>(static_cast<int8_t>(raw[192 + i / 16]));
    values[i] = factor * static_cast<float>(code);
  }
}

struct TypeRow {
  std::string_view name;
  StoredBlock block;
  void (*dequantize)(const uint8_t* raw, std::span<float> values);  // For whole blocks.
};

// The loop is instantiated for each type, so that compilers vectorize types of single numbers.
template <size_t kElements, size_t kBytes, void (*kDequantizeBlock)(const uint8_t*, float*)>
constexpr TypeRow Row(std::string_view name) {
  return {name, {kElements, kBytes}, [](const uint8_t* raw, std::span<float> values) {
            for (size_t i = 0; i < values.size(); i += kElements, raw += kBytes) {
              kDequantizeBlock(raw, values.data() + i);
            }
          }};
}

constexpr std::array kTypes = {Row<1, 4, One<F32>>("F32"),
                               Row<1, 2, One<Half>>("F16"),
                               Row<1, 2, One<Bf16>>("BF16"),
                               Row<32, 18, Nibbles<false, false, 8>>("Q4_0"),
                               Row<32, 20, Nibbles<true, false, 0>>("Q4_1"),
                               Row<32, 22, Nibbles<false, true, 16>>("Q5_0"),
                               Row<32, 24, Nibbles<true, true, 0>>("Q5_1"),
                               Row<32, 34, Q8_0>("Q8_0"),
                               Row<256, 84, Q2K>("Q2_K"),
                               Row<256, 110, Q3K>("Q3_K"),
                               Row<256, 144, Q4KOrQ5K<false>>("Q4_K"),
                               Row<256, 176, Q4KOrQ5K<true>>("Q5_K"),
                               Row<256, 210, Q6K>("Q6_K"),
                               Row<32, 18, Iq4Nl>("IQ4_NL"),
                               Row<256, 136, Iq4Xs>("IQ4_XS")};
static_assert(kTypes.size() == kNumElementTypes);

const TypeRow& RowOf(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

StoredBlock BlockOf(ElementType type) { return RowOf(type).block; }

std::string_view ElementTypeName(ElementType type) { return RowOf(type).name; }

void Dequantize(ElementType type, const std::byte* raw, std::span<float> destination) {
  RowOf(type).dequantize(reinterpret_cast<const uint8_t*>(raw), destination);
}

}  // namespace cria
