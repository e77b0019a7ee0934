// The scores of many queries, for attention_tile.cc, compiled once per instruction set.

#if defined(CRIA_OPS_ATTENTION_TILE_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_ATTENTION_TILE_SCORES_INL_H_
#undef CRIA_OPS_ATTENTION_TILE_SCORES_INL_H_
#else
#define CRIA_OPS_ATTENTION_TILE_SCORES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/dot_products-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::Block;
using attention::kTileRows;
using attention::TileWorkspace;

// Vectors of queries that are processed together.
inline constexpr size_t kPanelVectors = kHas32Registers ? 4 : 2;

// Calls `run.template operator()<kVectors>(lane)` for panels that cover all lanes, whose number is
// a multiple of kPaddingFloats.
template <typename Run>
HWY_INLINE void ForEachPanel(size_t num_lanes, const Run& run) {
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  constexpr size_t kPanelLanes = kPanelVectors * kLanes;
  size_t lane = 0;
  for (; lane + kPanelLanes <= num_lanes; lane += kPanelLanes) {
    run.template operator()<kPanelVectors>(lane);
  }
  if constexpr (attention::kPaddingFloats % kPanelLanes != 0) {
    for (; lane < num_lanes; lane += kLanes) run.template operator()<1>(lane);
  }
}

// Computes the scores of the block's keys, whose page begins at `page`, and the kVectors vectors of
// queries from `lane` on. Writes whole tiles of kTileRows rows of scores; those of rows that are
// not in the block have no meaning.
template <size_t kVectors>
HWY_INLINE void ScorePanelF32(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                              const float* HWY_RESTRICT page, const Block& block) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  // A score's four sums are computed one after another, in this order, so that adding each pair,
  // then both results, takes two places.
  constexpr size_t kNumSums = 4;
  constexpr size_t kSumOrder[kNumSums] = {0, 2, 1, 3};
  const size_t num_lanes = workspace.num_lanes;
  const size_t last = block.end - 1;
  for (size_t k = block.begin / kTileRows * kTileRows; k < block.end; k += kTileRows) {
    const float* key[kTileRows];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) key[i] = page + std::min(k + i, last) * head_dim;
    V pending[2][kTileRows][kVectors];
    V dots[kTileRows][kVectors];
    const auto add_to_dots = [&dots](const V(&sums)[kTileRows][kVectors]) HWY_ATTR {
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) dots[i][v] = hn::Add(sums[i][v], dots[i][v]);
      }
    };
#pragma GCC unroll 4
    for (size_t s = 0; s < kNumSums; ++s) {
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) dots[i][v] = hn::Zero(d);
      }
      const float* HWY_RESTRICT queries = workspace.queries + kSumOrder[s] * num_lanes + lane;
      for (size_t j = kSumOrder[s]; j < head_dim; j += kNumSums, queries += kNumSums * num_lanes) {
        V query[kVectors];
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) query[v] = hn::Load(d, queries + v * kLanes);
#pragma GCC unroll 4
        for (size_t i = 0; i < kTileRows; ++i) {
          const V element = hn::Set(d, key[i][j]);
#pragma GCC unroll 4
          for (size_t v = 0; v < kVectors; ++v) {
            dots[i][v] = hn::MulAdd(element, query[v], dots[i][v]);
          }
        }
      }
      if (s % 2 == 1) add_to_dots(pending[0]);
      if (s == kNumSums - 1) {
        add_to_dots(pending[1]);
      } else {
#pragma GCC unroll 4
        for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
          for (size_t v = 0; v < kVectors; ++v) pending[s % 2][i][v] = dots[i][v];
        }
      }
    }
    float* HWY_RESTRICT scores = workspace.scores + k * num_lanes + lane;
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(dots[i][v], d, scores + i * num_lanes + v * kLanes);
      }
    }
  }
}

// Computes the scores of int8 keys; the scales of the page's keys begin at `key_scales`.
template <size_t kVectors>
HWY_INLINE void ScorePanelInt8(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                               const int8_t* HWY_RESTRICT page,
                               const float* HWY_RESTRICT key_scales, const Block& block) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const hn::Repartition<int8_t, decltype(d)> di8;
  using V = hn::VFromD<decltype(di32)>;
  using VBytes = hn::VFromD<decltype(di8)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  const size_t last = block.end - 1;
  for (size_t k = block.begin / kTileRows * kTileRows; k < block.end; k += kTileRows) {
    const int8_t* key[kTileRows];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) key[i] = page + std::min(k + i, last) * head_dim;
    V dots[kTileRows][kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) dots[i][v] = hn::Zero(di32);
    }
    const int8_t* HWY_RESTRICT queries = workspace.int8_queries + lane * 4;
    const auto accumulate = [&](size_t j, size_t count) HWY_ATTR {
      VBytes query[kVectors];
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        query[v] = hn::Load(di8, queries + j * num_lanes + v * kLanes * 4);
      }
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileRows; ++i) {
        int32_t quad = 0;
        std::memcpy(&quad, key[i] + j, count);
        const auto biased = Bias(di8, hn::BitCast(di8, hn::Set(di32, quad)));
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) {
          dots[i][v] = DotQuads(di32, biased, query[v], dots[i][v]);
        }
      }
    };
    size_t j = 0;
#if CRIA_OPS_IS_ARM_DOT_TARGET
    constexpr size_t kBytes = hn::MaxLanes(di8);
    for (; j + kBytes <= head_dim; j += kBytes) {
      VBytes bytes[kTileRows];
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileRows; ++i) bytes[i] = hn::LoadU(di8, key[i] + j);
      ForEachConstant<kBytes / 4>([&]<size_t kLane>() HWY_ATTR {
        const int8_t* HWY_RESTRICT lane_queries = queries + (j + 4 * kLane) * num_lanes;
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) {
          const VBytes query = hn::Load(di8, lane_queries + v * kLanes * 4);
#pragma GCC unroll 4
          for (size_t i = 0; i < kTileRows; ++i) {
            dots[i][v] = DotQuadsByLane<kLane>(query, bytes[i], dots[i][v]);
          }
        }
      });
    }
#endif
    for (; j + 4 <= head_dim; j += 4) accumulate(j, 4);
    if (j < head_dim) accumulate(j, head_dim - j);

    float* HWY_RESTRICT scores = workspace.scores + k * num_lanes + lane;
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      // The page has memory for all scales, also of keys that are not in the block.
      const auto key_scale = hn::Set(d, key_scales[k + i]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t at = lane + v * kLanes;
        const V exact = hn::Sub(dots[i][v], hn::Load(di32, workspace.query_biases + at));
        const auto scaled =
            hn::Mul(hn::ConvertTo(d, exact), hn::Load(d, workspace.query_scales + at));
        hn::Store(hn::Mul(scaled, key_scale), d, scores + i * num_lanes + v * kLanes);
      }
    }
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_ATTENTION_TILE_SCORES_INL_H_
