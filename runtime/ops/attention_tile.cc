// Attention for many queries, where the time goes into arithmetic: each lane of a vector is a
// query, so that scores and sums need no shuffles. Keys and values are read from the cache in their
// order, one element for all lanes at a time.

#include <algorithm>
#include <cstring>

#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_tile.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/kv_elements-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::HeadCache;
using attention::HeadQueries;
using attention::kMaskedScore;
using attention::kTileRows;
using attention::TileWorkspace;

// Vectors of queries that are processed together.
inline constexpr size_t kPanelVectors = kHas32Registers ? 4 : 2;

// Computes the scores of the kVectors vectors of queries from `lane` on. Writes rows of scores up
// to the next multiple of kTileRows; rows after num_keys repeat the last key's.
template <size_t kVectors>
HWY_INLINE void ScorePanelF32(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                              const float* HWY_RESTRICT keys, size_t num_keys) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  for (size_t k = 0; k < num_keys; k += kTileRows) {
    const float* key[kTileRows];
    V dots[kTileRows][kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      key[i] = keys + std::min(k + i, num_keys - 1) * head_dim;
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) dots[i][v] = hn::Zero(d);
    }
    const float* HWY_RESTRICT queries = workspace.queries + lane;
    for (size_t j = 0; j < head_dim; ++j, queries += num_lanes) {
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

// The same for int8 keys.
template <size_t kVectors>
HWY_INLINE void ScorePanelInt8(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                               const int8_t* HWY_RESTRICT keys,
                               const float* HWY_RESTRICT key_scales, size_t num_keys) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const hn::Repartition<int8_t, decltype(d)> di8;
  using V = hn::VFromD<decltype(di32)>;
  using VBytes = hn::VFromD<decltype(di8)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  for (size_t k = 0; k < num_keys; k += kTileRows) {
    const int8_t* key[kTileRows];
    V dots[kTileRows][kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      key[i] = keys + std::min(k + i, num_keys - 1) * head_dim;
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
    for (; j + 4 <= head_dim; j += 4) accumulate(j, 4);
    if (j < head_dim) accumulate(j, head_dim - j);

    float* HWY_RESTRICT scores = workspace.scores + k * num_lanes + lane;
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      const auto key_scale = hn::Set(d, key_scales[std::min(k + i, num_keys - 1)]);
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

// Masks the scores of the `num_keys` positions, from `begin` on, that are before each query's
// window.
void MaskBeforeWindows(const TileWorkspace& workspace, const HeadQueries& queries, size_t begin,
                       size_t num_keys) {
  for (size_t lane = 0; lane < workspace.num_lanes; ++lane) {
    const size_t q = std::min(lane, queries.num_queries() - 1);
    const size_t window = std::max(queries.BeginPosition(q), begin);
    const size_t num_hidden = std::min(window - begin, num_keys);
    for (size_t k = 0; k < num_hidden; ++k) {
      workspace.scores[k * workspace.num_lanes + lane] = kMaskedScore;
    }
  }
}

// One step of the online softmax for one vector of queries. kIsMasked: some of them attend only to
// a part of the `num_keys` positions from `begin` on, because they are at earlier positions.
template <bool kIsMasked>
HWY_INLINE void SoftmaxStep(const TileWorkspace& workspace, size_t lane, size_t begin,
                            size_t num_keys) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const size_t num_lanes = workspace.num_lanes;
  float* HWY_RESTRICT scores = workspace.scores + lane;
  const auto end = hn::Load(di32, workspace.end_positions + lane);
  const auto old_largest = hn::Load(d, workspace.largest + lane);

  auto largest = old_largest;
  for (size_t k = 0; k < num_keys; ++k) {
    auto score = hn::Load(d, scores + k * num_lanes);
    if constexpr (kIsMasked) {
      const auto position = hn::Set(di32, static_cast<int32_t>(begin + k));
      const auto is_visible = hn::RebindMask(d, hn::Lt(position, end));
      score = hn::IfThenElse(is_visible, score, hn::Set(d, kMaskedScore));
      hn::Store(score, d, scores + k * num_lanes);
    }
    largest = hn::Max(largest, score);
  }
  auto sum = hn::Zero(d);
  for (size_t k = 0; k < num_keys; ++k) {
    const auto weight = Exp(d, hn::Sub(hn::Load(d, scores + k * num_lanes), largest));
    hn::Store(weight, d, scores + k * num_lanes);
    sum = hn::Add(sum, weight);
  }
  const auto rescale = Exp(d, hn::Sub(old_largest, largest));
  const auto old_sum = hn::Load(d, workspace.weight_sums + lane);
  hn::Store(hn::MulAdd(old_sum, rescale, sum), d, workspace.weight_sums + lane);
  hn::Store(largest, d, workspace.largest + lane);
  hn::Store(rescale, d, workspace.rescales + lane);
}

// sums = sums * rescales + weights * values, for kVectors vectors of queries from `lane` on.
template <size_t kVectors>
HWY_INLINE void AddValuesPanel(const TileWorkspace& workspace, size_t lane, size_t head_dim,
                               const float* HWY_RESTRICT values, size_t num_values) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  for (size_t j = 0; j < head_dim; j += kTileRows) {
    float* HWY_RESTRICT sums = workspace.sums + j * num_lanes + lane;
    const float* column[kTileRows];
    V sum[kTileRows][kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTileRows; ++i) {
      column[i] = values + std::min(j + i, head_dim - 1);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sum[i][v] = hn::Mul(hn::Load(d, sums + i * num_lanes + v * kLanes),
                            hn::Load(d, workspace.rescales + lane + v * kLanes));
      }
    }
    const float* HWY_RESTRICT weights = workspace.scores + lane;
    for (size_t k = 0; k < num_values; ++k, weights += num_lanes) {
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

// Calls `run.template operator()<kVectors>(lane)` for panels that cover all lanes.
template <typename Run>
HWY_INLINE void ForEachPanel(size_t num_lanes, const Run& run) {
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  size_t lane = 0;
  for (; lane + kPanelVectors * kLanes <= num_lanes; lane += kPanelVectors * kLanes) {
    run.template operator()<kPanelVectors>(lane);
  }
  for (; lane < num_lanes; lane += kLanes) run.template operator()<1>(lane);
}

// Lanes without a query repeat the last query.
void PrepareQueries(const HeadQueries& queries, KvType type, const TileWorkspace& workspace) {
  const size_t head_dim = queries.head_dim;
  const size_t num_lanes = workspace.num_lanes;
  const float scale = queries.score_scale;
  for (size_t lane = 0; lane < num_lanes; ++lane) {
    const size_t q = std::min(lane, queries.num_queries() - 1);
    const float* input = queries.Query(q);
    workspace.end_positions[lane] = static_cast<int32_t>(queries.EndPosition(q));
    workspace.largest[lane] = kMaskedScore;
    workspace.weight_sums[lane] = 0.0f;
    if (type != KvType::kInt8) {
      for (size_t j = 0; j < head_dim; ++j) {
        workspace.queries[j * num_lanes + lane] = input[j] * scale;
      }
      continue;
    }
    // The array of converted elements holds the row until its elements are distributed.
    auto* row = reinterpret_cast<int8_t*>(workspace.floats);
    workspace.query_scales[lane] = QuantizeSymmetric(input, head_dim, row) * scale;
    int32_t sum = 0;
    for (size_t j = 0; j < attention::RoundUp(head_dim, 4); ++j) {
      const int8_t element = j < head_dim ? row[j] : int8_t{0};
      workspace.int8_queries[(j / 4 * num_lanes + lane) * 4 + j % 4] = element;
      sum += element;
    }
    workspace.query_biases[lane] = kDotBias * sum;
  }
  std::fill_n(workspace.sums, attention::RoundUp(head_dim, kTileRows) * num_lanes, 0.0f);
}

// `count` elements from `begin` on as floats: the stored elements if they are floats, otherwise
// converted into the workspace.
const float* AsFloats(const TileWorkspace& workspace, KvType type, const void* data, size_t begin,
                      size_t count) {
  if (type == KvType::kF32) return static_cast<const float*>(data) + begin;
  WithKvElement(type, [&]<typename T>() HWY_ATTR {
    const hn::ScalableTag<float> d;
    constexpr size_t kLanes = hn::MaxLanes(d);
    const T* HWY_RESTRICT elements = static_cast<const T*>(data) + begin;
    float* HWY_RESTRICT floats = workspace.floats;
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      hn::Store(LoadFloats(d, elements + i), d, floats + i);
    }
    if (i < count) hn::StoreN(LoadFloatsN(d, elements + i, count - i), d, floats + i, count - i);
  });
  return workspace.floats;
}

// Computes the weights of one block, whose positions begin at `begin` and whose rows at `row`; they
// include the values' scales for int8.
void WeighBlock(const TileWorkspace& workspace, const HeadQueries& queries, const HeadCache& cache,
                size_t begin, size_t row, size_t num_tokens) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t head_dim = queries.head_dim;
  const size_t num_lanes = workspace.num_lanes;
  if (cache.type == KvType::kInt8) {
    const int8_t* keys = static_cast<const int8_t*>(cache.keys) + row * head_dim;
    ForEachPanel(num_lanes, [&]<size_t kVectors>(size_t lane) HWY_ATTR {
      ScorePanelInt8<kVectors>(workspace, lane, head_dim, keys, cache.key_scales + row, num_tokens);
    });
  } else {
    const float* keys =
        AsFloats(workspace, cache.type, cache.keys, row * head_dim, num_tokens * head_dim);
    ForEachPanel(num_lanes, [&]<size_t kVectors>(size_t lane) HWY_ATTR {
      ScorePanelF32<kVectors>(workspace, lane, head_dim, keys, num_tokens);
    });
  }
  const size_t last_query = queries.num_queries() - 1;
  if (queries.BeginPosition(last_query) > begin) {
    MaskBeforeWindows(workspace, queries, begin, num_tokens);
  }
  const bool is_masked = begin + num_tokens > queries.EndPosition(0);
  for (size_t lane = 0; lane < num_lanes; lane += kLanes) {
    if (is_masked) {
      SoftmaxStep<true>(workspace, lane, begin, num_tokens);
    } else {
      SoftmaxStep<false>(workspace, lane, begin, num_tokens);
    }
  }
  if (cache.type == KvType::kInt8) {
    for (size_t k = 0; k < num_tokens; ++k) {
      const auto scale = hn::Set(d, cache.value_scales[row + k]);
      float* weights = workspace.scores + k * num_lanes;
      for (size_t lane = 0; lane < num_lanes; lane += kLanes) {
        hn::Store(hn::Mul(hn::Load(d, weights + lane), scale), d, weights + lane);
      }
    }
  }
}

void AttendTile(const HeadQueries& queries, const HeadCache& cache, std::byte* base) {
  const size_t head_dim = queries.head_dim;
  const TileWorkspace workspace(base, queries.num_queries(), head_dim);
  PrepareQueries(queries, cache.type, workspace);
  const size_t end = queries.EndPosition(queries.num_queries() - 1);
  for (size_t block = queries.BeginPosition(0), next; block < end; block = next) {
    next = attention::BlockEnd(block, end);
    const size_t num_tokens = next - block;
    const size_t row = cache.table.Row(block);
    WeighBlock(workspace, queries, cache, block, row, num_tokens);
    const float* values =
        AsFloats(workspace, cache.type, cache.values, row * head_dim, num_tokens * head_dim);
    ForEachPanel(workspace.num_lanes, [&]<size_t kVectors>(size_t lane) HWY_ATTR {
      AddValuesPanel<kVectors>(workspace, lane, head_dim, values, num_tokens);
    });
  }
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    const float inverse = 1.0f / workspace.weight_sums[q];
    float* output = queries.Output(q);
    for (size_t j = 0; j < head_dim; ++j) {
      output[j] = workspace.sums[j * workspace.num_lanes + q] * inverse;
    }
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(AttendTile);

namespace attention {

size_t TileWorkspaceBytes(size_t num_queries, size_t head_dim) {
  return TileWorkspace(nullptr, num_queries, head_dim).bytes;
}

void AttendTile(const HeadQueries& queries, const HeadCache& cache, std::byte* workspace) {
  HWY_DYNAMIC_DISPATCH(AttendTile)(queries, cache, workspace);
}

}  // namespace attention
}  // namespace cria::ops
#endif  // HWY_ONCE
