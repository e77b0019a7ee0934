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

// A format of GGML, or one that the converter makes: a row is a sequence of blocks, each with its
// own scale, in f16 or bf16. A weight is
//   scale * group_scale * number(code) - minimum * group_minimum
// where group_scale and group_minimum are 1 in a format without them, and number(code) is
// code - zero_point, or an entry of kBlockCodebook.
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
  bool has_codebook;
  bool has_bf16_scales = false;

  constexpr size_t groups() const { return inputs / group_inputs; }
};

// How many bits of so many, which are left over, the next plane has if codes are stored as planes.
constexpr unsigned PlaneBits(unsigned bits_left) {
  return bits_left >= 8 ? 8 : bits_left >= 4 ? 4 : bits_left >= 2 ? 2 : 1;
}

// The most inputs and groups that a block has.
inline constexpr size_t kMaxBlockInputs = 256;
inline constexpr size_t kMaxBlockGroups = 16;

// GGML's numbers for the codes of IQ4_NL and IQ4_XS.
inline constexpr int8_t kBlockCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};

inline constexpr std::array kBlockFormats = {
    BlockFormat{Scheme::kQ4_0, "Q4_0", 32, 18, 4, 8, 32, GroupScales::kNone, false, false},
    BlockFormat{Scheme::kQ4_1, "Q4_1", 32, 20, 4, 0, 32, GroupScales::kNone, true, false},
    BlockFormat{Scheme::kQ5_0, "Q5_0", 32, 22, 5, 16, 32, GroupScales::kNone, false, false},
    BlockFormat{Scheme::kQ5_1, "Q5_1", 32, 24, 5, 0, 32, GroupScales::kNone, true, false},
    BlockFormat{Scheme::kQ8_0, "Q8_0", 32, 34, 8, 0, 32, GroupScales::kNone, false, false},
    BlockFormat{Scheme::kQ2K, "Q2_K", 256, 84, 2, 0, 16, GroupScales::kNibbles, true, false},
    BlockFormat{Scheme::kQ3K, "Q3_K", 256, 110, 3, 4, 16, GroupScales::kBytes, false, false},
    BlockFormat{Scheme::kQ4K, "Q4_K", 256, 144, 4, 0, 32, GroupScales::kBytes, true, false},
    BlockFormat{Scheme::kQ5K, "Q5_K", 256, 176, 5, 0, 32, GroupScales::kBytes, true, false},
    BlockFormat{Scheme::kQ6K, "Q6_K", 256, 210, 6, 32, 16, GroupScales::kBytes, false, false},
    BlockFormat{Scheme::kIq4Nl, "IQ4_NL", 32, 18, 4, 0, 32, GroupScales::kNone, false, true},
    BlockFormat{Scheme::kIq4Xs, "IQ4_XS", 256, 136, 4, 0, 32, GroupScales::kBytes, false, true},
    // Scale, minimum and the codes as planes, as BlockTiles has them. Scales in bf16 take weights
    // of any magnitude.
    BlockFormat{Scheme::kW2G64, "w2g64", 64, 20, 2, 0, 64, GroupScales::kNone, true, false, true},
    BlockFormat{Scheme::kW3G64, "w3g64", 64, 28, 3, 0, 64, GroupScales::kNone, true, false, true},
    BlockFormat{Scheme::kW4G64, "w4g64", 64, 36, 4, 0, 64, GroupScales::kNone, true, false, true},
    BlockFormat{Scheme::kW5G64, "w5g64", 64, 44, 5, 0, 64, GroupScales::kNone, true, false, true},
    BlockFormat{Scheme::kW6G64, "w6g64", 64, 52, 6, 0, 64, GroupScales::kNone, true, false, true},
};
static_assert(kBlockFormats.size() == kNumSchemes - kNumXnnpackSchemes);
// GGML's are the first ones.
inline constexpr size_t kNumGgmlFormats = 12;

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
