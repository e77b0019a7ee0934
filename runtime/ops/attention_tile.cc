// Attention for many queries, where the time goes into arithmetic: each lane of a vector is a
// query, so that scores and sums need no shuffles. Keys and values are read from the cache in their
// order, one element for all lanes at a time.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/dot_product_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_tile.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/attention_tile_scores-inl.h"
#include "ops/attention_tile_values-inl.h"
#include "ops/block_queries-inl.h"
#include "ops/dot_products-inl.h"
#include "ops/key_offsets-inl.h"
#include "ops/kv_elements-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::HeadCache;
using attention::HeadQueries;
using attention::kMaskedScore;
using attention::kSpanTokens;
using attention::TileSums;

// Adds to the scores of the block's positions what the coefficients of each lane and of each row
// say: row_middles * middles + row_slopes * slopes.
HWY_INLINE void AddOffsets(const TileWorkspace& workspace, const Block& block,
                           const auto& row_middle, const auto& row_slope) {
  const hn::ScalableTag<float> d;
  const size_t num_lanes = workspace.num_lanes;
  for (size_t k = block.begin; k < block.end; ++k) {
    float* HWY_RESTRICT scores = workspace.scores + k * num_lanes;
    const auto middle_factor = hn::Set(d, row_middle(k));
    const auto slope_factor = hn::Set(d, row_slope(k));
    for (size_t lane = 0; lane < num_lanes; lane += hn::MaxLanes(d)) {
      const auto middle = hn::Mul(middle_factor, hn::Load(d, workspace.offset_middles + lane));
      const auto added =
          hn::MulAdd(slope_factor, hn::Load(d, workspace.offset_slopes + lane), middle);
      hn::Store(hn::Add(hn::Load(d, scores + lane), added), d, scores + lane);
    }
  }
}

// Adds what the scores of the block's positions lack.
void AddOffsetScores(const TileWorkspace& workspace, const HeadQueries& queries,
                     const HeadCache& cache, const Block& block) {
  const size_t num_lanes = workspace.num_lanes;
  const size_t head_dim = queries.head_dim;
  const size_t position = block.page_position + block.begin;
  const PageOffsets page(cache.key_offsets, 0, head_dim, cache.rotary_dim,
                         cache.shift.PageOf(position));
  const size_t first_row = page.Row(position);
  const float middle_row =
      PageOffsets::kMiddleRow + static_cast<float>(block.begin) - static_cast<float>(first_row);
  BlockQueries block_queries(queries, cache, position);
  const auto query_of = [&](size_t lane) {
    return block_queries.Query(std::min(lane, queries.num_queries() - 1));
  };
  for (size_t lane = 0; lane < num_lanes; ++lane) {
    const OffsetScore score(page, query_of(lane), head_dim, queries.score_scale);
    workspace.offset_middles[lane] = score.middle;
    workspace.offset_slopes[lane] = score.slope;
  }
  AddOffsets(
      workspace, block, [](size_t) { return 1.0f; },
      [=](size_t k) { return static_cast<float>(k) - middle_row; });
  for (size_t i = 0; i < page.num_turned; ++i) {
    const TurnedPair& pair = page.turned[i];
    const BlockTurns turns(page, pair, block.begin, block.end, first_row);
    for (size_t lane = 0; lane < num_lanes; ++lane) {
      const TurnedScore score(page, pair, query_of(lane), queries.score_scale);
      workspace.offset_middles[lane] = score.cosine;
      workspace.offset_slopes[lane] = score.sine;
    }
    AddOffsets(
        workspace, block, [&](size_t k) { return turns.cosines[k]; },
        [&](size_t k) { return turns.sines[k]; });
  }
}

// Caps the scores of the block's positions.
void CapScores(const TileWorkspace& workspace, float score_cap, const Block& block) {
  const hn::ScalableTag<float> d;
  const auto cap = hn::Set(d, score_cap);
  const auto inverse = hn::Set(d, 1.0f / score_cap);
  float* HWY_RESTRICT scores = workspace.scores;
  const size_t end = block.end * workspace.num_lanes;
  for (size_t i = block.begin * workspace.num_lanes; i < end; i += hn::MaxLanes(d)) {
    hn::Store(SoftCapped(d, hn::Load(d, scores + i), cap, inverse), d, scores + i);
  }
}

// Masks the scores of the block's positions that are before each query's window.
void MaskBeforeWindows(const TileWorkspace& workspace, const HeadQueries& queries,
                       const Block& block) {
  for (size_t lane = 0; lane < workspace.num_lanes; ++lane) {
    const size_t q = std::min(lane, queries.num_queries() - 1);
    const size_t window = std::max(queries.BeginPosition(q), block.page_position);
    const size_t end_hidden = std::min(window - block.page_position, block.end);
    for (size_t k = block.begin; k < end_hidden; ++k) {
      workspace.scores[k * workspace.num_lanes + lane] = kMaskedScore;
    }
  }
}

// Masks the scores of the block's positions at which one vector of queries has ended.
HWY_INLINE void MaskAfterEnds(const TileWorkspace& workspace, size_t lane, const Block& block) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const auto end = hn::Load(di32, workspace.end_positions + lane);
  float* HWY_RESTRICT scores = workspace.scores + lane;
  for (size_t k = block.begin; k < block.end; ++k) {
    const auto position = hn::Set(di32, static_cast<int32_t>(block.page_position + k));
    const auto is_visible = hn::RebindMask(d, hn::Lt(position, end));
    const auto score = hn::Load(d, scores + k * workspace.num_lanes);
    hn::Store(hn::IfThenElse(is_visible, score, hn::Set(d, kMaskedScore)), d,
              scores + k * workspace.num_lanes);
  }
}

// One step of the online softmax for one vector of queries.
HWY_INLINE void SoftmaxStep(const TileWorkspace& workspace, size_t lane, const Block& block) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  float* HWY_RESTRICT scores = workspace.scores + lane;
  const V old_largest = hn::Load(d, workspace.span.largest + lane);
  V largest = old_largest;
  for (size_t k = block.begin; k < block.end; ++k) {
    largest = hn::Max(largest, hn::Load(d, scores + k * num_lanes));
  }
  // As many sums as GatherSpan has, which has a position in each lane.
  const size_t padded_begin = block.begin / kLanes * kLanes;
  const size_t padded_end = attention::RoundUp(block.end, kLanes);
  const V masked = hn::Set(d, kMaskedScore);
  for (size_t k = padded_begin; k < block.begin; ++k) hn::Store(masked, d, scores + k * num_lanes);
  for (size_t k = block.end; k < padded_end; ++k) hn::Store(masked, d, scores + k * num_lanes);
  V sums[kLanes];
  for (size_t s = 0; s < kLanes; s += 4) {
    V four_sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (size_t k = padded_begin + s; k < padded_end; k += kLanes) {
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        float* HWY_RESTRICT row = scores + (k + i) * num_lanes;
        const V weight = ExpOfNonPositive(d, hn::Sub(hn::Load(d, row), largest));
        hn::Store(weight, d, row);
        four_sums[i] = hn::Add(four_sums[i], weight);
      }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) sums[s + i] = four_sums[i];
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums[i] = hn::Add(sums[i], sums[i + half]);
  }
  const V rescale = ExpOfNonPositive(d, hn::Sub(old_largest, largest));
  const V old_sum = hn::Load(d, workspace.span.weights + lane);
  hn::Store(hn::MulAdd(old_sum, rescale, sums[0]), d, workspace.span.weights + lane);
  hn::Store(largest, d, workspace.span.largest + lane);
  hn::Store(rescale, d, workspace.rescales + lane);
}

// For the block that begins at `position`, and those behind it. Lanes without a query repeat the
// last query.
void PrepareQueries(const HeadQueries& queries, const HeadCache& cache, size_t position,
                    const TileWorkspace& workspace) {
  const size_t head_dim = queries.head_dim;
  const size_t num_lanes = workspace.num_lanes;
  const float scale = queries.score_scale;
  BlockQueries block_queries(queries, cache, position);
  for (size_t lane = 0; lane < num_lanes; ++lane) {
    const size_t q = std::min(lane, queries.num_queries() - 1);
    const float* input = block_queries.Query(q);
    workspace.end_positions[lane] = static_cast<int32_t>(queries.EndPosition(q));
    if (!IsInt8(cache.type)) {
      for (size_t j = 0; j < head_dim; ++j) {
        workspace.queries[j * num_lanes + lane] = input[j] * scale;
      }
      continue;
    }
    // The array of converted elements holds the row until its elements are distributed.
    auto* row = reinterpret_cast<int8_t*>(workspace.floats);
    workspace.query_scales[lane] = StoreSpreadRow(input, head_dim, row) * scale;
    std::fill(row + head_dim, row + attention::RoundUp(head_dim, 4), int8_t{0});
    int32_t sum = 0;
    if constexpr (kDotBias != 0) sum = std::accumulate(row, row + head_dim, int32_t{0});
    workspace.query_biases[lane] = kDotBias * sum;
    int8_t* quads = workspace.int8_queries + lane * 4;
    for (size_t j = 0; j < head_dim; j += 4) std::memcpy(quads + j * num_lanes, row + j, 4);
  }
}

// The block's keys or values as floats, [kBlockTokens][head_dim], of which only the block's rows
// have a meaning: as they are stored if they are floats, otherwise converted into the workspace.
const float* AsFloats(const TileWorkspace& workspace, KvType type, const void* data,
                      const Block& block, size_t head_dim) {
  const size_t page = block.page_row * head_dim;
  if (type == KvType::kF32) return static_cast<const float*>(data) + page;
  WithAttendedElement(type, [&]<typename T>() HWY_ATTR {
    const hn::ScalableTag<float> d;
    constexpr size_t kLanes = hn::MaxLanes(d);
    const T* HWY_RESTRICT elements = static_cast<const T*>(data) + page;
    float* HWY_RESTRICT floats = workspace.floats;
    const size_t end = block.end * head_dim;
    size_t i = block.begin * head_dim;
    for (; i + kLanes <= end; i += kLanes) hn::StoreU(LoadFloats(d, elements + i), d, floats + i);
    if (i < end) hn::StoreN(LoadFloatsN(d, elements + i, end - i), d, floats + i, end - i);
  });
  return workspace.floats;
}

HWY_INLINE void ScaleWeights(const TileWorkspace& workspace, const float* value_scales,
                             const Block& block) {
  const hn::ScalableTag<float> d;
  for (size_t k = block.begin; k < block.end; ++k) {
    const auto scale = hn::Set(d, value_scales[k]);
    float* weights = workspace.scores + k * workspace.num_lanes;
    for (size_t lane = 0; lane < workspace.num_lanes; lane += hn::MaxLanes(d)) {
      hn::Store(hn::Mul(hn::Load(d, weights + lane), scale), d, weights + lane);
    }
  }
}

// Computes the weights of one block; for int8, they include the values' scales, and are digits
// where there are products of integers.
void WeighBlock(const TileWorkspace& workspace, const HeadQueries& queries, const HeadCache& cache,
                const Block& block) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t head_dim = queries.head_dim;
  const size_t num_lanes = workspace.num_lanes;
  if (IsInt8(cache.type)) {
    const int8_t* page = static_cast<const int8_t*>(cache.keys) + block.page_row * head_dim;
    const float* key_scales = cache.key_scales + block.page_row;
    ForEachPanel(num_lanes, [&]<size_t kVectors>(size_t lane) HWY_ATTR {
      ScorePanelInt8<kVectors>(workspace, lane, head_dim, page, key_scales, block);
    });
  } else {
    const float* page = AsFloats(workspace, cache.type, cache.keys, block, head_dim);
    ForEachPanel(num_lanes, [&]<size_t kVectors>(size_t lane) HWY_ATTR {
      ScorePanelF32<kVectors>(workspace, lane, head_dim, page, block);
    });
  }
  if (cache.key_offsets.middles != nullptr) AddOffsetScores(workspace, queries, cache, block);
  if (queries.score_cap != 0.0f) CapScores(workspace, queries.score_cap, block);
  const size_t last_query = queries.num_queries() - 1;
  if (queries.BeginPosition(last_query) > block.page_position + block.begin) {
    MaskBeforeWindows(workspace, queries, block);
  }
  const bool has_ends = block.page_position + block.end > queries.EndPosition(0);
  for (size_t lane = 0; lane < num_lanes; lane += kLanes) {
    if (has_ends) MaskAfterEnds(workspace, lane, block);
    SoftmaxStep(workspace, lane, block);
  }
  if (IsInt8(cache.type)) {
    const float* value_scales = cache.value_scales + block.page_row;
    if constexpr (kHasIntegerWeights) {
      WeightsToDigits(workspace, value_scales, block);
    } else {
      ScaleWeights(workspace, value_scales, block);
    }
  }
}

void AddFloatValues(const TileWorkspace& workspace, const HeadCache& cache, const Block& block,
                    size_t head_dim, bool is_first) {
  const float* page = AsFloats(workspace, cache.type, cache.values, block, head_dim);
  ForEachPanel(workspace.num_lanes, [&]<size_t kVectors>(size_t lane) HWY_ATTR {
    AddValuesPanel<kVectors>(workspace, lane, head_dim, page, block, is_first);
  });
}

// Adds the block's values to the sums.
void AddValueBlock(const TileWorkspace& workspace, const HeadCache& cache, const Block& block,
                   size_t head_dim, bool is_first) {
  WithAttendedElement(cache.type, [&]<typename T>() HWY_ATTR {
    if constexpr (kHasIntegerWeights && std::is_same_v<T, int8_t>) {
      const T* page = static_cast<const T*>(cache.values) + block.page_row * head_dim;
      const std::byte* groups = InterleaveValues(workspace, page, block, head_dim);
      ForEachPanel(workspace.num_lanes, [&]<size_t kVectors>(size_t lane) HWY_ATTR {
        AddInt8ValuesPanel<kVectors>(workspace, lane, head_dim, groups, block, is_first);
      });
    } else {
      AddFloatValues(workspace, cache, block, head_dim, is_first);
    }
  });
}

// Adds the span's sums to those of all spans before it.
void MergeSpan(const TileWorkspace& workspace, size_t head_dim) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t num_lanes = workspace.num_lanes;
  const TileSums& next = workspace.span;
  const TileSums& merged = workspace.merged;
  // The factors of lanes are in arrays that the next span's first block computes anew.
  float* const old_factors = workspace.rescales;
  float* const next_factors = next.largest;
  for (size_t lane = 0; lane < num_lanes; lane += kLanes) {
    const auto old_largest = hn::Load(d, merged.largest + lane);
    const auto next_largest = hn::Load(d, next.largest + lane);
    const auto largest = hn::Max(old_largest, next_largest);
    hn::Store(largest, d, merged.largest + lane);
    hn::Store(ExpOfNonPositive(d, hn::Sub(old_largest, largest)), d, old_factors + lane);
    hn::Store(ExpOfNonPositive(d, hn::Sub(next_largest, largest)), d, next_factors + lane);
  }
  const auto merge = [&](float* HWY_RESTRICT old_sums,
                         const float* HWY_RESTRICT next_sums) HWY_ATTR {
    for (size_t lane = 0; lane < num_lanes; lane += kLanes) {
      const auto old_part = hn::Mul(hn::Load(d, old_sums + lane), hn::Load(d, old_factors + lane));
      const auto next_sum = hn::Load(d, next_sums + lane);
      hn::Store(hn::MulAdd(next_sum, hn::Load(d, next_factors + lane), old_part), d,
                old_sums + lane);
    }
  };
  merge(merged.weights, next.weights);
  for (size_t j = 0; j < head_dim; ++j) {
    merge(merged.values + j * num_lanes, next.values + j * num_lanes);
  }
}

void AttendTile(const HeadQueries& queries, const HeadCache& cache, std::byte* base) {
  const size_t head_dim = queries.head_dim;
  TileWorkspace workspace(base, queries.num_queries(), head_dim);
  const size_t begin = queries.BeginPosition(0);
  const size_t end = queries.EndPosition(queries.num_queries() - 1);
  for (size_t position = begin, next; position < end; position = next) {
    next = cache.BlockEnd(position, end);
    if (position == begin || HaveQueriesChanged(cache, position)) {
      PrepareQueries(queries, cache, position, workspace);
    }
    const bool is_first = position == begin || position % kSpanTokens == 0;
    if (is_first) {
      std::fill_n(workspace.span.weights, workspace.num_lanes, 0.0f);
      std::fill_n(workspace.span.largest, workspace.num_lanes, kMaskedScore);
    }
    const Block block(cache.table, position, next);
    WeighBlock(workspace, queries, cache, block);
    AddValueBlock(workspace, cache, block, head_dim, is_first);
    if (next != end && next % kSpanTokens != 0) continue;
    const bool is_first_span = position / kSpanTokens == begin / kSpanTokens;
    if (is_first_span) {
      std::swap(workspace.span, workspace.merged);
    } else {
      MergeSpan(workspace, head_dim);
    }
  }
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    const float inverse =
        queries.InverseSum(q, workspace.merged.largest[q], workspace.merged.weights[q]);
    float* output = queries.Output(q);
    for (size_t j = 0; j < head_dim; ++j) {
      output[j] = workspace.merged.values[j * workspace.num_lanes + q] * inverse;
    }
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

CRIA_OPS_EXPORT(AttendTile);

namespace attention {

size_t TileWorkspaceBytes(size_t num_queries, size_t head_dim) {
  return TileWorkspace(nullptr, num_queries, head_dim).bytes;
}

void AttendTile(const HeadQueries& queries, const HeadCache& cache, std::byte* workspace) {
  CRIA_OPS_DISPATCH(cache.type == KvType::kInt8, AttendTile)
  (queries, cache, workspace);
}

}  // namespace attention
}  // namespace cria::ops
#endif  // HWY_ONCE
