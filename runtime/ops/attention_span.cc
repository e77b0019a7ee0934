// Attention for few queries, where the time goes into reading the cache: each key and each value is
// loaded once for up to six queries, and the lanes of vectors are a head's dimensions.

#include <algorithm>

#include "core/numeric.h"
#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/dot_product_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_span.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/attention_span_scores-inl.h"
#include "ops/attention_span_values-inl.h"
#include "ops/block_queries-inl.h"
#include "ops/dot_products-inl.h"
#include "ops/key_offsets-inl.h"
#include "ops/value_digits-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::kMaskedScore;

// Adds what the scores of all queries and the block's positions lack, whole vectors.
void AddOffsetScores(const SpanWorkspace& workspace, const HeadQueries& queries,
                     const HeadCache& cache, const Block& block) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t head_dim = queries.head_dim;
  const size_t position = block.page_position + block.begin;
  const PageOffsets page(cache.key_offsets, 0, head_dim, cache.rotary_dim,
                         cache.shift.PageOf(position));
  const size_t first_row = page.Row(position);
  const float middle_row =
      PageOffsets::kMiddleRow + static_cast<float>(block.begin) - static_cast<float>(first_row);
  BlockQueries block_queries(queries, cache, position);
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    const float* const query = block_queries.Query(q);
    const OffsetScore score(page, query, head_dim, queries.score_scale);
    const auto middle = hn::Set(d, score.middle);
    const auto slope = hn::Set(d, score.slope);
    float* HWY_RESTRICT scores = workspace.scores + q * kBlockTokens;
    for (size_t k = block.begin / kLanes * kLanes; k < block.end; k += kLanes) {
      const auto row = hn::Iota(d, static_cast<float>(k) - middle_row);
      const auto added = hn::MulAdd(row, slope, middle);
      hn::Store(hn::Add(hn::Load(d, scores + k), added), d, scores + k);
    }
    for (size_t i = 0; i < page.num_turned; ++i) {
      const TurnedPair& pair = page.turned[i];
      const TurnedScore turned(page, pair, query, queries.score_scale);
      const BlockTurns turns(page, pair, block.begin, block.end, first_row);
      const auto cosine = hn::Set(d, turned.cosine);
      const auto sine = hn::Set(d, turned.sine);
      for (size_t k = block.begin / kLanes * kLanes; k < block.end; k += kLanes) {
        const auto added = hn::MulAdd(hn::LoadU(d, turns.sines + k), sine,
                                      hn::Mul(hn::LoadU(d, turns.cosines + k), cosine));
        hn::Store(hn::Add(hn::Load(d, scores + k), added), d, scores + k);
      }
    }
  }
}

// Caps the scores of all queries and the block's positions, whole vectors.
void CapScores(const SpanWorkspace& workspace, const HeadQueries& queries, const Block& block) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto cap = hn::Set(d, queries.score_cap);
  const auto inverse = hn::Set(d, 1.0f / queries.score_cap);
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    float* HWY_RESTRICT scores = workspace.scores + q * kBlockTokens;
    for (size_t k = block.begin / kLanes * kLanes; k < block.end; k += kLanes) {
      hn::Store(SoftCapped(d, hn::Load(d, scores + k), cap, inverse), d, scores + k);
    }
  }
}

// Masks the scores [padded_begin, padded_end), whole vectors, except those in [begin, end).
HWY_INLINE void MaskScores(size_t padded_begin, size_t padded_end, size_t begin, size_t end,
                           float* HWY_RESTRICT scores) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const auto first = hn::Set(di32, static_cast<int32_t>(begin));
  const auto past_last = hn::Set(di32, static_cast<int32_t>(end));
  for (size_t k = padded_begin; k < padded_end; k += hn::MaxLanes(d)) {
    const auto position = hn::Iota(di32, static_cast<int32_t>(k));
    const auto is_out = hn::Or(hn::Lt(position, first), hn::Ge(position, past_last));
    const auto score = hn::Load(d, scores + k);
    hn::Store(hn::IfThenElse(hn::RebindMask(d, is_out), hn::Set(d, kMaskedScore), score), d,
              scores + k);
  }
}

// Replaces the scores in all vectors that contain the block by weights, exp(score - largest_score),
// and returns their sum. kHasScales: then multiplies the weights by the values' scales, so that
// values only need to be converted.
template <bool kHasScales>
HWY_INLINE float WeighScores(const Block& block, float largest_score,
                             const float* HWY_RESTRICT value_scales, float* HWY_RESTRICT scores) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t end = block.end;
  const auto shift = hn::Set(d, largest_score);
  auto sums = hn::Zero(d);
  for (size_t k = block.begin / kLanes * kLanes; k < end; k += kLanes) {
    auto weight = ExpOfNonPositive(d, hn::Sub(hn::Load(d, scores + k), shift));
    sums = hn::Add(sums, weight);
    // The page has memory for all scales.
    if constexpr (kHasScales) weight = hn::Mul(weight, hn::LoadU(d, value_scales + k));
    hn::Store(weight, d, scores + k);
  }
  return SumByHalves(d, sums);
}

// Replaces the block's weights by digits; returns the scale of a sum of their products.
HWY_INLINE float DigitsOfWeights(const Block& block, float* HWY_RESTRICT weights) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t padded_begin = block.begin / kLanes * kLanes;
  const size_t padded_end = attention::RoundUp(block.end, kLanes);
  // Scales of values that are not in the block may be anything, NaN included.
  if (block.begin != padded_begin) {
    const auto is_before = hn::FirstN(d, block.begin - padded_begin);
    const auto first = hn::Load(d, weights + padded_begin);
    hn::Store(hn::IfThenZeroElse(is_before, first), d, weights + padded_begin);
  }
  if (block.end != padded_end) {
    float* const last = weights + padded_end - kLanes;
    const auto is_in = hn::FirstN(d, block.end - (padded_end - kLanes));
    hn::Store(hn::IfThenElseZero(is_in, hn::Load(d, last)), d, last);
  }
  auto maxima = hn::Zero(d);
  for (size_t k = padded_begin; k < padded_end; k += kLanes) {
    maxima = hn::Max(maxima, hn::Load(d, weights + k));
  }
  const auto largest = hn::Set(d, hn::ReduceMax(d, maxima));
  const auto codes_per_unit = CodesPerUnit(d, largest);
  for (size_t k = padded_begin; k < padded_end; k += kLanes) {
    hn::Store(DigitsOfGroups(d, hn::Load(d, weights + k), codes_per_unit), d, weights + k);
  }
  return hn::GetLane(CodeScale(d, largest));
}

// One step of the online softmax for query `q`, which attends to the positions [begin, end) of the
// block. Replaces their scores by weights, exp(score - largest), or by these weights' digits; the
// block's other scores become 0. Writes the factor of earlier sums.
HWY_INLINE void SoftmaxStep(const SpanWorkspace& workspace, size_t q, const Block& block,
                            size_t begin, size_t end, const float* value_scales, float& largest,
                            float& sum) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  float* HWY_RESTRICT scores = workspace.scores + q * kBlockTokens;
  const size_t padded_begin = block.begin / kLanes * kLanes;
  const size_t padded_end = attention::RoundUp(block.end, kLanes);
  if (begin != padded_begin || end != padded_end) {
    MaskScores(padded_begin, padded_end, begin, end, scores);
  }
  auto maxima = hn::Load(d, scores + padded_begin);
  for (size_t k = padded_begin + kLanes; k < padded_end; k += kLanes) {
    maxima = hn::Max(maxima, hn::Load(d, scores + k));
  }
  const float new_largest = std::max(largest, hn::ReduceMax(d, maxima));
  float added;
  if (value_scales != nullptr) {
    added = WeighScores<true>(block, new_largest, value_scales, scores);
    if constexpr (kHasIntegerWeights) workspace.code_scales[q] = DigitsOfWeights(block, scores);
  } else {
    added = WeighScores<false>(block, new_largest, nullptr, scores);
  }
  // Before the first step, there are no sums.
  const float rescale = largest == kMaskedScore
                            ? 0.0f
                            : hn::GetLane(ExpOfNonPositive(d, hn::Set(d, largest - new_largest)));
  sum = hn::GetLane(hn::MulAdd(hn::Set(d, sum), hn::Set(d, rescale), hn::Set(d, added)));
  largest = new_largest;
  workspace.rescales[q] = rescale;
}

// output = input * factor.
HWY_INLINE void Scale(const float* HWY_RESTRICT input, float factor, size_t size,
                      float* HWY_RESTRICT output) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto factors = hn::Set(d, factor);
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, input + i), factors), d, output + i);
  }
  for (; i < size; ++i) output[i] = input[i] * factor;
}

// For the block that begins at `position`, and those behind it.
void PrepareQueries(const HeadQueries& queries, const HeadCache& cache, size_t position,
                    const SpanWorkspace& workspace) {
  const size_t head_dim = queries.head_dim;
  const float scale = queries.score_scale;
  BlockQueries block_queries(queries, cache, position);
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    const float* input = block_queries.Query(q);
    if (!IsInt8(cache.type)) {
      float* output = workspace.queries + q * workspace.padded_floats;
      std::fill_n(output + workspace.padded_floats - attention::kPaddingFloats,
                  attention::kPaddingFloats, 0.0f);
      Scale(input, scale, head_dim, output);
    } else {
      int8_t* output = workspace.int8_queries + q * workspace.padded_bytes;
      std::fill_n(output + workspace.padded_bytes - attention::kPaddingBytes,
                  attention::kPaddingBytes, int8_t{0});
      workspace.query_scales[q] = StoreSpreadRow(input, head_dim, output) * scale;
      int32_t sum = 0;
      if constexpr (kDotBias != 0) {
        for (size_t j = 0; j < head_dim; ++j) sum += output[j];
      }
      workspace.query_biases[q] = kDotBias * sum;
    }
  }
}

void GatherSpan(const HeadQueries& queries, const HeadCache& cache, size_t begin, size_t end,
                std::byte* base, float* partials) {
  const size_t num_queries = queries.num_queries();
  const size_t stride = attention::PartialFloats(queries.head_dim);
  const size_t largest_at = stride - attention::kPaddingFloats;
  const SpanWorkspace workspace(base, num_queries, queries.head_dim);
  for (size_t q = 0; q < num_queries; ++q) {
    float* partial = partials + q * stride;
    std::fill(partial, partial + stride, 0.0f);
    partial[largest_at] = kMaskedScore;
  }
  const size_t last_end = queries.EndPosition(num_queries - 1);
  // After the last position, the next head is read from the beginning of the window.
  const size_t next_head_row = cache.num_rows + cache.table.Row(queries.BeginPosition(0));
  for (size_t position = begin, next; position < end; position = next) {
    next = cache.BlockEnd(position, end);
    if (position == begin || HaveQueriesChanged(cache, position)) {
      PrepareQueries(queries, cache, position, workspace);
    }
    const Block block(cache.table, position, next);
    const size_t next_row = next < last_end ? cache.table.Row(next) : next_head_row;
    ScoreBlock(workspace, queries, cache, block);
    if (cache.key_offsets.middles != nullptr) AddOffsetScores(workspace, queries, cache, block);
    if (queries.score_cap != 0.0f) CapScores(workspace, queries, block);
    const float* value_scales = IsInt8(cache.type) ? cache.value_scales + block.page_row : nullptr;
    for (size_t q = 0; q < num_queries; ++q) {
      const size_t query_begin = std::clamp(queries.BeginPosition(q), position, next);
      const size_t query_end = std::clamp(queries.EndPosition(q), position, next);
      float* partial = partials + q * stride;
      SoftmaxStep(workspace, q, block, query_begin - block.page_position,
                  query_end - block.page_position, value_scales, partial[largest_at],
                  partial[largest_at + 1]);
    }
    AddValueBlock(workspace, queries, cache, block, next_row, partials);
  }
}

// Adds the next span's partial to that of all spans before it; AttendTile merges in the same way.
HWY_INLINE void MergeSpan(const float* HWY_RESTRICT next, size_t largest_at,
                          float* HWY_RESTRICT merged) {
  const hn::ScalableTag<float> d;
  const auto old_largest = hn::Set(d, merged[largest_at]);
  const auto next_largest = hn::Set(d, next[largest_at]);
  const auto largest = hn::Max(old_largest, next_largest);
  const auto old_factor = ExpOfNonPositive(d, hn::Sub(old_largest, largest));
  const auto next_factor = ExpOfNonPositive(d, hn::Sub(next_largest, largest));
  const auto merge = [&](auto old_sum, auto next_sum) HWY_ATTR {
    return hn::MulAdd(next_sum, next_factor, hn::Mul(old_sum, old_factor));
  };
  for (size_t j = 0; j < largest_at; j += hn::MaxLanes(d)) {
    hn::Store(merge(hn::Load(d, merged + j), hn::Load(d, next + j)), d, merged + j);
  }
  merged[largest_at + 1] =
      hn::GetLane(merge(hn::Set(d, merged[largest_at + 1]), hn::Set(d, next[largest_at + 1])));
  merged[largest_at] = hn::GetLane(largest);
}

void CombineSpans(const HeadQueries& queries, float* partials) {
  const size_t head_dim = queries.head_dim;
  const size_t stride = attention::PartialFloats(head_dim);
  const size_t span_stride = queries.num_queries() * stride;
  const size_t largest_at = stride - attention::kPaddingFloats;
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    float* merged = partials + q * stride;
    const size_t num_tokens = queries.EndPosition(q) - queries.FirstSpan();
    const size_t num_spans = DivideRoundingUp(num_tokens, attention::kSpanTokens);
    for (size_t span = 1; span < num_spans; ++span) {
      MergeSpan(merged + span * span_stride, largest_at, merged);
    }
    Scale(merged, queries.InverseSum(q, merged[largest_at], merged[largest_at + 1]), head_dim,
          queries.Output(q));
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

CRIA_OPS_EXPORT(GatherSpan);
CRIA_OPS_EXPORT(CombineSpans);

namespace attention {

size_t SpanWorkspaceBytes(size_t num_queries, size_t head_dim) {
  return SpanWorkspace(nullptr, num_queries, head_dim).bytes;
}

void GatherSpan(const HeadQueries& queries, const HeadCache& cache, size_t begin, size_t end,
                std::byte* workspace, float* partials) {
  CRIA_OPS_DISPATCH(cache.type == KvType::kInt8, GatherSpan)
  (queries, cache, begin, end, workspace, partials);
}

void CombineSpans(const HeadQueries& queries, float* partials) {
  CRIA_OPS_DISPATCH(false, CombineSpans)(queries, partials);
}

}  // namespace attention
}  // namespace cria::ops
#endif  // HWY_ONCE
