#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weights/scheme.h"

namespace cria {

// How the groups of a block have scales of their own, and minimums if the format has them.
enum class GroupScales : uint8_t {
  kNone,     // The block is one group.
  kBytes,    // A signed byte for each scale, and an unsigned one for each minimum.
  kNibbles,  // An unsigned byte for both: the scale in the low nibble.
};

// How the scale of a block is stored, and its minimum if there is one.
enum class BlockScaleType : uint8_t {
  kF16,
  kBf16,  // Takes weights of any magnitude.
  kE8m0,  // A byte, which is the exponent of a power of two.
};

// What codes of four bits stand for, if it is not the code minus a zero point.
enum class Codebook : uint8_t {
  kNone,
  kIq4,   // GGML's numbers of IQ4_NL and IQ4_XS.
  kE2m1,  // Floats of a sign, two bits of an exponent and one of a mantissa, doubled.
};

// A format of GGML, or one that the converter makes: a row is a sequence of blocks, each with its
// own scale. A weight is
//   scale * group_scale * number(code) - minimum * group_minimum
// where group_scale and group_minimum are 1 in a format without them, and number(code) is
// code - zero_point, or an entry of the codebook.
struct BlockFormat {
  Scheme scheme;
  std::string_view name;
  uint16_t inputs;    // Input channels of a block.
  uint16_t bytes;     // A stored block's bytes.
  uint8_t code_bits;  // Codes are unsigned, except that those of 8 bits are int8.
  uint8_t zero_point;
  uint8_t group_inputs;  // Input channels of a group.
  GroupScales group_scales;
  bool has_minimum;
  Codebook codebook = Codebook::kNone;
  BlockScaleType scale_type = BlockScaleType::kF16;

  constexpr size_t scale_bytes() const { return scale_type == BlockScaleType::kE8m0 ? 1 : 2; }
  constexpr size_t groups() const { return inputs / group_inputs; }
};

// How many bits of so many, which are left over, the next plane has if codes are stored as planes.
constexpr unsigned PlaneBits(unsigned bits_left) {
  return bits_left >= 8 ? 8 : bits_left >= 4 ? 4 : bits_left >= 2 ? 2 : 1;
}

// The most inputs and groups that a block has.
inline constexpr size_t kMaxBlockInputs = 256;
inline constexpr size_t kMaxBlockGroups = 16;

inline constexpr int8_t kIq4Codebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};
// E2M1 has halves, so these are twice its numbers, and the scale is half the stored one.
inline constexpr int8_t kE2m1Codebook[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                             0, -1, -2, -3, -4, -6, -8, -12};

// The numbers of 16 codes; there must be a codebook.
constexpr const int8_t* NumbersOf(Codebook codebook) {
  return codebook == Codebook::kE2m1 ? kE2m1Codebook : kIq4Codebook;
}

inline constexpr std::array kBlockFormats = {
    BlockFormat{Scheme::kQ4_0, "Q4_0", 32, 18, 4, 8, 32, GroupScales::kNone, false},
    BlockFormat{Scheme::kQ4_1, "Q4_1", 32, 20, 4, 0, 32, GroupScales::kNone, true},
    BlockFormat{Scheme::kQ5_0, "Q5_0", 32, 22, 5, 16, 32, GroupScales::kNone, false},
    BlockFormat{Scheme::kQ5_1, "Q5_1", 32, 24, 5, 0, 32, GroupScales::kNone, true},
    BlockFormat{Scheme::kQ8_0, "Q8_0", 32, 34, 8, 0, 32, GroupScales::kNone, false},
    BlockFormat{Scheme::kQ2K, "Q2_K", 256, 84, 2, 0, 16, GroupScales::kNibbles, true},
    BlockFormat{Scheme::kQ3K, "Q3_K", 256, 110, 3, 4, 16, GroupScales::kBytes, false},
    BlockFormat{Scheme::kQ4K, "Q4_K", 256, 144, 4, 0, 32, GroupScales::kBytes, true},
    BlockFormat{Scheme::kQ5K, "Q5_K", 256, 176, 5, 0, 32, GroupScales::kBytes, true},
    BlockFormat{Scheme::kQ6K, "Q6_K", 256, 210, 6, 32, 16, GroupScales::kBytes, false},
    BlockFormat{Scheme::kIq4Nl, "IQ4_NL", 32, 18, 4, 0, 32, GroupScales::kNone, false,
                Codebook::kIq4},
    BlockFormat{Scheme::kIq4Xs, "IQ4_XS", 256, 136, 4, 0, 32, GroupScales::kBytes, false,
                Codebook::kIq4},
    // Scale, minimum and the codes as planes, as BlockTiles has them.
    BlockFormat{Scheme::kW2G64, "w2g64", 64, 20, 2, 0, 64, GroupScales::kNone, true,
                Codebook::kNone, BlockScaleType::kBf16},
    BlockFormat{Scheme::kW3G64, "w3g64", 64, 28, 3, 0, 64, GroupScales::kNone, true,
                Codebook::kNone, BlockScaleType::kBf16},
    BlockFormat{Scheme::kW4G64, "w4g64", 64, 36, 4, 0, 64, GroupScales::kNone, true,
                Codebook::kNone, BlockScaleType::kBf16},
    BlockFormat{Scheme::kW5G64, "w5g64", 64, 44, 5, 0, 64, GroupScales::kNone, true,
                Codebook::kNone, BlockScaleType::kBf16},
    BlockFormat{Scheme::kW6G64, "w6g64", 64, 52, 6, 0, 64, GroupScales::kNone, true,
                Codebook::kNone, BlockScaleType::kBf16},
    BlockFormat{Scheme::kMxfp4, "MXFP4", 32, 17, 4, 0, 32, GroupScales::kNone, false,
                Codebook::kE2m1, BlockScaleType::kE8m0},
};
static_assert(kBlockFormats.size() == kNumSchemes - kNumXnnpackSchemes);
// Whether a scheme is a format of GGML.
constexpr bool IsGgmlFormat(Scheme scheme) {
  return (scheme >= Scheme::kQ4_0 && scheme <= Scheme::kIq4Xs) || scheme == Scheme::kMxfp4;
}

// Null for XNNPACK's schemes.
constexpr const BlockFormat* FindBlockFormat(Scheme scheme) {
  const int index = static_cast<int>(scheme) - kNumXnnpackSchemes;
  if (index < 0 || index >= static_cast<int>(kBlockFormats.size())) return nullptr;
  return &kBlockFormats[static_cast<size_t>(index)];
}
static_assert(std::ranges::all_of(kBlockFormats, [](const BlockFormat& format) {
  return FindBlockFormat(format.scheme) == &format;
}));

}  // namespace cria
