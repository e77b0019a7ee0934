// The values of many queries, for attention_tile.cc, compiled once per instruction set.

#if defined(CRIA_OPS_ATTENTION_TILE_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_ATTENTION_TILE_VALUES_INL_H_
#undef CRIA_OPS_ATTENTION_TILE_VALUES_INL_H_
#else
#define CRIA_OPS_ATTENTION_TILE_VALUES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/dot_products-inl.h"
#include "ops/value_digits-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::Block;
using attention::HeadCache;
using attention::kBlockTokens;
using attention::kTileRows;
using attention::TileWorkspace;

// sums = sums * rescales + weights * values, for kVectors vectors of queries from `lane` on; the
// page's values begin at `page`. In the span's first block, there are no sums yet.
template <size_t kVectors>
HWY_INLINE void AddValuesPanel(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                               const float* HWY_RESTRICT page, const Block& block, bool is_first) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  for (size_t j = 0; j < head_dim; j += kTileRows) {
    float* HWY_RESTRICT sums = workspace.span.values + j * num_lanes + lane;
    const float* column[kTileRows];
    V sum[kTileRows][kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      column[i] = page + std::min(j + i, head_dim - 1);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sum[i][v] = is_first ? hn::Zero(d)
                             : hn::Mul(hn::Load(d, sums + i * num_lanes + v * kLanes),
                                       hn::Load(d, workspace.rescales + lane + v * kLanes));
      }
    }
    const float* HWY_RESTRICT weights = workspace.scores + block.begin * num_lanes + lane;
    for (size_t k = block.begin; k < block.end; ++k, weights += num_lanes) {
      V weight[kVectors];
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) weight[v] = hn::Load(d, weights + v * kLanes);
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileRows; ++i) {
        const V element = hn::Set(d, column[i][k * head_dim]);
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) {
          sum[i][v] = hn::MulAdd(element, weight[v], sum[i][v]);
        }
      }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(sum[i][v], d, sums + i * num_lanes + v * kLanes);
      }
    }
  }
}

// Replaces the block's weights by the digits of these weights times the values' scales: each digit
// of a group's positions is in the place of one of them, the higher one in the first's.
inline void WeightsToDigits(const TileWorkspace& workspace, const float* value_scales,
                            const Block& block) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  const size_t num_lanes = workspace.num_lanes;
  const size_t begin = block.begin / kGroup * kGroup;
  for (size_t lane = 0; lane < num_lanes; lane += hn::MaxLanes(d)) {
    float* HWY_RESTRICT weights = workspace.scores + lane;
    V largest = hn::Zero(d);
    for (size_t k = block.begin; k < block.end; ++k) {
      const V weight = hn::Mul(hn::Load(d, weights + k * num_lanes), hn::Set(d, value_scales[k]));
      hn::Store(weight, d, weights + k * num_lanes);
      largest = hn::Max(largest, weight);
    }
    for (size_t k = begin; k < block.begin; ++k) {
      hn::Store(hn::Zero(d), d, weights + k * num_lanes);
    }
    for (size_t k = block.end; k % kGroup != 0; ++k) {
      hn::Store(hn::Zero(d), d, weights + k * num_lanes);
    }
    const V codes_per_unit = CodesPerUnit(d, largest);
    for (size_t k = begin; k < block.end; k += kGroup) {
      V group[kGroup];
#pragma GCC unroll 4
      for (size_t i = 0; i < kGroup; ++i) group[i] = hn::Load(d, weights + (k + i) * num_lanes);
      DigitsOfLanes(d, group, codes_per_unit);
#pragma GCC unroll 2
      for (size_t i = 0; i < kDigits; ++i) hn::Store(group[i], d, weights + (k + i) * num_lanes);
    }
    hn::Store(CodeScale(d, largest), d, workspace.code_scales + lane);
  }
}

// Bytes from the values of one group of positions to those of the next.
HWY_INLINE size_t GroupStride(size_t head_dim) {
  return attention::RoundUp(head_dim, kTileRows) * kWordBytes;
}

// Rearranges the rows of a group, from `rows` on: the word of dimension j has the values of all
// positions. The last words are not written if they would lie behind `stride`.
HWY_INLINE void InterleaveGroup(const int8_t* HWY_RESTRICT rows, size_t head_dim, size_t stride,
                                std::byte* HWY_RESTRICT output) {
  const hn::ScalableTag<int8_t> di8;
  const hn::Repartition<float, decltype(di8)> d;
  constexpr size_t kBytes = hn::MaxLanes(di8);
  // Two 16-bit numbers of each dimension take twice as much as two bytes.
  constexpr size_t kRowBytes = kHasPairProducts ? kBytes / 2 : kBytes;
  constexpr size_t kParts = kRowBytes * kWordBytes / kBytes;
  const hn::CappedTag<int8_t, kRowBytes> di8_row;
  for (size_t j = 0; j < head_dim; j += kRowBytes) {
    const bool is_rest = j + kRowBytes > head_dim;
    hn::VFromD<decltype(di8_row)> row[kGroup];
    hn::VFromD<DValues> parts[kParts];
    hn::VFromD<decltype(d)> ordered[kParts];
#pragma GCC unroll 4
    for (size_t i = 0; i < kGroup; ++i) {
      const int8_t* p = rows + i * head_dim + j;
      row[i] = is_rest ? hn::LoadN(di8_row, p, head_dim - j) : hn::LoadU(di8_row, p);
    }
    InterleaveRows(di8_row, row, parts);
#pragma GCC unroll 4
    for (size_t i = 0; i < kParts; ++i) ordered[i] = hn::BitCast(d, parts[i]);
    if constexpr (!kHasPairProducts) TransposeBlocks(d, ordered);
#pragma GCC unroll 4
    for (size_t i = 0; i < kParts; ++i) {
      const size_t at = j * kWordBytes + i * kBytes;
      if (at >= stride) break;
      auto* const to = reinterpret_cast<int8_t*>(output + at);
      const auto bytes = hn::BitCast(di8, ordered[i]);
      if (at + kBytes <= stride) {
        hn::StoreU(bytes, di8, to);
      } else {
        hn::StoreN(bytes, di8, to, stride - at);
      }
    }
  }
}

// The block's int8 values in the workspace, with those of a group side by side for each dimension:
// [kBlockTokens / kGroup][head_dim, rounded up to kTileRows], words of kWordBytes.
inline const std::byte* InterleaveValues(const TileWorkspace& workspace, const int8_t* page,
                                         const Block& block, size_t head_dim) {
  const size_t stride = GroupStride(head_dim);
  auto* const groups = reinterpret_cast<std::byte*>(workspace.floats);
  for (size_t k = block.begin / kGroup * kGroup; k < block.end; k += kGroup) {
    InterleaveGroup(page + k * head_dim, head_dim, stride, groups + k / kGroup * stride);
  }
  return groups;
}

// Adds to sums[i][v] the products of one digit of the weights of vector v by dimension i of
// `groups`.
template <size_t kVectors>
HWY_INLINE void AddInt8ValuesTile(
    const TileWorkspace& workspace, size_t lane, size_t digit, const std::byte* groups,
    size_t stride, const Block& block,
    hn::VFromD<hn::ScalableTag<int32_t>> (&sums)[kTileRows][kVectors]) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  const size_t begin = block.begin / kGroup * kGroup;
  const float* HWY_RESTRICT weights = workspace.scores + (begin + digit) * num_lanes + lane;
  const std::byte* HWY_RESTRICT values = groups + begin / kGroup * stride;
  for (size_t k = begin; k < block.end;
       k += kGroup, weights += kGroup * num_lanes, values += stride) {
    hn::VFromD<DDigits> digits[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      digits[v] = hn::BitCast(DDigits(), hn::Load(d, weights + v * kLanes));
    }
#if CRIA_OPS_IS_ARM_DOT_TARGET
    const auto value = hn::LoadU(DValues(), reinterpret_cast<const int8_t*>(values));
    ForEachConstant<kTileRows>([&]<size_t kRow>() HWY_ATTR {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sums[kRow][v] = DotQuadsByLane<kRow>(digits[v], value, sums[kRow][v]);
      }
    });
#else
    const hn::RebindToSigned<decltype(d)> di32;
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      int32_t word;
      static_assert(sizeof word == kWordBytes);
      std::memcpy(&word, values + i * kWordBytes, sizeof word);
      const auto value = hn::BitCast(DValues(), hn::Set(di32, word));
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = AddProducts(di32, digits[v], value, sums[i][v]);
      }
    }
#endif
  }
}

// Does what AddValuesPanel does, for weights that are digits and `groups` of InterleaveValues.
template <size_t kVectors>
HWY_INLINE void AddInt8ValuesPanel(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                                   const std::byte* groups, const Block& block, bool is_first) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  using V = hn::VFromD<decltype(d)>;
  using VI32 = hn::VFromD<decltype(di32)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  const size_t stride = GroupStride(head_dim);
  for (size_t j = 0; j < head_dim; j += kTileRows, groups += kTileRows * kWordBytes) {
    VI32 sums[kTileRows][kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(di32);
    }
    AddInt8ValuesTile<kVectors>(workspace, lane, 0, groups, stride, block, sums);
    if constexpr (kDigits == 2) {
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::ShiftLeft<8>(sums[i][v]);
      }
      AddInt8ValuesTile<kVectors>(workspace, lane, 1, groups, stride, block, sums);
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = lane + v * kLanes;
      const V code_scale = hn::Load(d, workspace.code_scales + at);
      const V rescale = hn::Load(d, workspace.rescales + at);
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileRows; ++i) {
        float* HWY_RESTRICT sum = workspace.span.values + (j + i) * num_lanes + at;
        const V old = is_first ? hn::Zero(d) : hn::Mul(hn::Load(d, sum), rescale);
        hn::Store(hn::MulAdd(hn::ConvertTo(d, sums[i][v]), code_scale, old), d, sum);
      }
    }
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_ATTENTION_TILE_VALUES_INL_H_
