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

// Replaces the block's weights by the digits of these weights times the values' scales: the higher
// digits of four positions are in the first one's place, the lower ones in the second's.
inline void WeightsToDigits(const TileWorkspace& workspace, const float* value_scales,
                            const Block& block) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  const size_t num_lanes = workspace.num_lanes;
  const size_t begin = block.begin / kQuad * kQuad;
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
    for (size_t k = block.end; k % kQuad != 0; ++k) {
      hn::Store(hn::Zero(d), d, weights + k * num_lanes);
    }
    const V codes_per_unit = CodesPerUnit(d, largest);
    for (size_t k = begin; k < block.end; k += kQuad) {
      V quad[kQuad];
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuad; ++i) quad[i] = hn::Load(d, weights + (k + i) * num_lanes);
      DigitsOfLanes(d, quad, codes_per_unit);
#pragma GCC unroll 2
      for (size_t i = 0; i < kDigits; ++i) hn::Store(quad[i], d, weights + (k + i) * num_lanes);
    }
    hn::Store(CodeScale(d, largest), d, workspace.code_scales + lane);
  }
}

// Bytes from the quads of four positions to those of the next four.
HWY_INLINE size_t QuadStride(size_t head_dim) {
  return attention::RoundUp(head_dim, kTileRows) * kQuad;
}

// The block's int8 values with four positions of each dimension side by side, in the workspace:
// [kBlockTokens / 4][head_dim, rounded up to kTileRows][4].
inline const int8_t* InterleaveValues(const TileWorkspace& workspace, const int8_t* page,
                                      const Block& block, size_t head_dim) {
  const hn::ScalableTag<float> d;
  const hn::Repartition<int8_t, decltype(d)> di8;
  using VI8 = hn::VFromD<decltype(di8)>;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kBytes = hn::MaxLanes(di8);
  const size_t stride = QuadStride(head_dim);
  auto* const quads = reinterpret_cast<int8_t*>(workspace.floats);
  for (size_t k = block.begin / kQuad * kQuad; k < block.end; k += kQuad) {
    const int8_t* HWY_RESTRICT rows = page + k * head_dim;
    int8_t* HWY_RESTRICT output = quads + k / kQuad * stride;
    for (size_t j = 0; j < head_dim; j += kBytes) {
      const bool is_rest = j + kBytes > head_dim;
      VI8 row[kQuad], parts[kQuad];
      V ordered[kQuad];
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuad; ++i) {
        const int8_t* p = rows + i * head_dim + j;
        row[i] = is_rest ? hn::LoadN(di8, p, head_dim - j) : hn::LoadU(di8, p);
      }
      InterleaveRows<kQuad>(di8, row, parts);
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuad; ++i) ordered[i] = hn::BitCast(d, parts[i]);
      TransposeBlocks(d, ordered);
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuad; ++i) {
        const size_t at = j * kQuad + i * kBytes;
        if (at >= stride) break;
        hn::StoreN(hn::BitCast(di8, ordered[i]), di8, output + at, stride - at);
      }
    }
  }
  return quads;
}

// Adds to sums[i][v] the products of one digit of the weights of vector v by dimension i of
// `quads`.
template <size_t kVectors>
HWY_INLINE void AddInt8ValuesTile(
    const TileWorkspace& workspace, size_t lane, size_t digit, const int8_t* HWY_RESTRICT quads,
    size_t stride, const Block& block,
    hn::VFromD<hn::ScalableTag<int32_t>> (&sums)[kTileRows][kVectors]) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  for (size_t k = block.begin / kQuad * kQuad; k < block.end; k += kQuad) {
    const float* HWY_RESTRICT weights = workspace.scores + (k + digit) * num_lanes + lane;
    const int8_t* HWY_RESTRICT values = quads + k / kQuad * stride;
#if CRIA_OPS_IS_ARM_DOT_TARGET
    const hn::Repartition<int8_t, decltype(d)> di8;
    hn::VFromD<decltype(di8)> digits[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      digits[v] = hn::BitCast(di8, hn::Load(d, weights + v * kLanes));
    }
    const auto value = hn::LoadU(di8, values);
    ForEachConstant<kTileRows>([&]<size_t kRow>() HWY_ATTR {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sums[kRow][v] = DotQuadsByLane<kRow>(digits[v], value, sums[kRow][v]);
      }
    });
    (void)di32;
#else
    const hn::Repartition<int8_t, decltype(d)> di8;
    const hn::Repartition<uint8_t, decltype(d)> du8;
    hn::VFromD<decltype(du8)> digits[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      digits[v] = hn::BitCast(du8, hn::Load(d, weights + v * kLanes));
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      int32_t quad;
      std::memcpy(&quad, values + i * kQuad, sizeof quad);
      const auto value = hn::BitCast(di8, hn::Set(di32, quad));
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = DotQuads(di32, digits[v], value, sums[i][v]);
      }
    }
#endif
  }
}

// Does what AddValuesPanel does, for weights that are digits and `quads` of InterleaveValues.
template <size_t kVectors>
HWY_INLINE void AddInt8ValuesPanel(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                                   const int8_t* quads, const Block& block, bool is_first) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  using V = hn::VFromD<decltype(d)>;
  using VI32 = hn::VFromD<decltype(di32)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  const size_t stride = QuadStride(head_dim);
  for (size_t j = 0; j < head_dim; j += kTileRows, quads += kTileRows * kQuad) {
    VI32 sums[kTileRows][kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(di32);
    }
    AddInt8ValuesTile<kVectors>(workspace, lane, 0, quads, stride, block, sums);
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::ShiftLeft<8>(sums[i][v]);
    }
    AddInt8ValuesTile<kVectors>(workspace, lane, 1, quads, stride, block, sums);
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
