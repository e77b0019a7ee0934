// Attention for few queries, where the time goes into reading the cache: each key and each value is
// loaded once for up to four queries, and the lanes of vectors are a head's dimensions.

#include <algorithm>

#include "core/numeric.h"
#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_span.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/attention_span_scores-inl.h"
#include "ops/kv_elements-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::kMaskedScore;

// As many as fit into the registers.
inline constexpr size_t kValueQueries = 4;
inline constexpr size_t kValueTile = kHas32Registers ? 4 : 2;  // Vectors of one value.

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

// One step of the online softmax for one query, which attends to the positions [begin, end) of the
// block. Replaces their scores by exp(score - largest), times the values' scales if there are any,
// so that values only need to be converted; the block's other scores become 0. Returns the factor
// of earlier sums.
HWY_INLINE float SoftmaxStep(const Block& block, size_t begin, size_t end,
                             const float* value_scales, float* HWY_RESTRICT scores, float& largest,
                             float& sum) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
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
  const auto shift = hn::Set(d, new_largest);
  auto sums = hn::Zero(d);
  for (size_t k = padded_begin; k < padded_end; k += kLanes) {
    auto weight = Exp(d, hn::Sub(hn::Load(d, scores + k), shift));
    sums = hn::Add(sums, weight);
    if (value_scales != nullptr) {
      weight = hn::Mul(weight, hn::LoadN(d, value_scales + k, block.end - k));
    }
    hn::Store(weight, d, scores + k);
  }
  // Before the first step, there are no sums.
  const float rescale =
      largest == kMaskedScore ? 0.0f : hn::GetLane(Exp(d, hn::Set(d, largest - new_largest)));
  const auto added = hn::Set(d, SumByHalves(d, sums));
  sum = hn::GetLane(hn::MulAdd(hn::Set(d, sum), hn::Set(d, rescale), added));
  largest = new_largest;
  return rescale;
}

// For kQueries queries, whose partials begin at `partials`: adds kVectors vectors of every value,
// from dimension `j` on, to the accumulators. kIsRest: head_dim ends inside these vectors.
template <size_t kQueries, size_t kVectors, bool kIsRest, typename T>
HWY_INLINE void AddValueColumns(const SpanWorkspace& workspace, size_t first_query, size_t head_dim,
                                size_t j, const T* HWY_RESTRICT values, const T* next_keys,
                                const Block& block, float* HWY_RESTRICT partials) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t stride = attention::PartialFloats(head_dim);
  const float* HWY_RESTRICT weights = workspace.scores + first_query * kBlockTokens;
  V sums[kQueries][kVectors];
#pragma GCC unroll 4
  for (size_t q = 0; q < kQueries; ++q) {
    const V rescale = hn::Set(d, workspace.rescales[first_query + q]);
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      sums[q][v] = hn::Mul(hn::Load(d, partials + q * stride + j + v * kLanes), rescale);
    }
  }
  const bool is_first_pass = first_query == 0 && j == 0;
  for (size_t k = block.begin; k < block.end; ++k) {
    if (is_first_pass) PrefetchRows(next_keys, k, 1, head_dim);
    V value[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const T* p = values + k * head_dim + j + v * kLanes;
      if constexpr (kIsRest) {
        value[v] = LoadFloatsN(d, p, head_dim - j);
      } else {
        value[v] = LoadFloats(d, p);
      }
    }
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q) {
      const V weight = hn::Set(d, weights[q * kBlockTokens + k]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sums[q][v] = hn::MulAdd(weight, value[v], sums[q][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      hn::Store(sums[q][v], d, partials + q * stride + j + v * kLanes);
    }
  }
}

template <size_t kQueries, typename T>
void AddValues(const SpanWorkspace& workspace, size_t first_query, size_t head_dim, const T* values,
               const T* next_keys, const Block& block, float* partials) {
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  partials += first_query * attention::PartialFloats(head_dim);
  size_t j = 0;
  for (; j + kValueTile * kLanes <= head_dim; j += kValueTile * kLanes) {
    AddValueColumns<kQueries, kValueTile, false>(workspace, first_query, head_dim, j, values,
                                                 next_keys, block, partials);
  }
  for (; j + kLanes <= head_dim; j += kLanes) {
    AddValueColumns<kQueries, 1, false>(workspace, first_query, head_dim, j, values, next_keys,
                                        block, partials);
  }
  if (j < head_dim) {
    AddValueColumns<kQueries, 1, true>(workspace, first_query, head_dim, j, values, next_keys,
                                       block, partials);
  }
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

void PrepareQueries(const HeadQueries& queries, KvType type, const SpanWorkspace& workspace) {
  const size_t head_dim = queries.head_dim;
  const float scale = queries.score_scale;
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    const float* input = queries.Query(q);
    if (type != KvType::kInt8) {
      float* output = workspace.queries + q * workspace.padded_floats;
      std::fill_n(output + workspace.padded_floats - attention::kPaddingFloats,
                  attention::kPaddingFloats, 0.0f);
      Scale(input, scale, head_dim, output);
    } else {
      int8_t* output = workspace.int8_queries + q * workspace.padded_bytes;
      std::fill_n(output + workspace.padded_bytes - attention::kPaddingBytes,
                  attention::kPaddingBytes, int8_t{0});
      workspace.query_scales[q] = QuantizeSymmetric(input, head_dim, output) * scale;
      int32_t sum = 0;
      if constexpr (kDotBias != 0) {
        for (size_t j = 0; j < head_dim; ++j) sum += output[j];
      }
      workspace.query_biases[q] = kDotBias * sum;
    }
  }
}

// Prefetches the keys from `next_row` on.
void AddValueBlock(const SpanWorkspace& workspace, const HeadQueries& queries,
                   const HeadCache& cache, const Block& block, size_t next_row, float* partials) {
  const size_t head_dim = queries.head_dim;
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    const T* values = static_cast<const T*>(cache.values) + block.page_row * head_dim;
    const T* next_keys = static_cast<const T*>(cache.keys) + next_row * head_dim;
    ForEachQueryTile<kValueQueries>(queries.num_queries(), [&]<size_t kQueries>(size_t q) HWY_ATTR {
      AddValues<kQueries>(workspace, q, head_dim, values, next_keys, block, partials);
    });
  });
}

void GatherSpan(const HeadQueries& queries, const HeadCache& cache, size_t begin, size_t end,
                std::byte* base, float* partials) {
  const size_t num_queries = queries.num_queries();
  const size_t stride = attention::PartialFloats(queries.head_dim);
  const size_t largest_at = stride - attention::kPaddingFloats;
  const SpanWorkspace workspace(base, num_queries, queries.head_dim);
  PrepareQueries(queries, cache.type, workspace);
  for (size_t q = 0; q < num_queries; ++q) {
    float* partial = partials + q * stride;
    std::fill(partial, partial + stride, 0.0f);
    partial[largest_at] = kMaskedScore;
  }
  const size_t last_end = queries.EndPosition(num_queries - 1);
  // After the last position, the next head is read from the beginning of the window.
  const size_t next_head_row = cache.num_rows + cache.table.Row(queries.BeginPosition(0));
  for (size_t position = begin, next; position < end; position = next) {
    next = attention::BlockEnd(position, end);
    const Block block(cache.table, position, next);
    const size_t next_row = next < last_end ? cache.table.Row(next) : next_head_row;
    ScoreBlock(workspace, queries, cache, block);
    const float* value_scales =
        cache.type == KvType::kInt8 ? cache.value_scales + block.page_row : nullptr;
    for (size_t q = 0; q < num_queries; ++q) {
      const size_t query_begin = std::clamp(queries.BeginPosition(q), position, next);
      const size_t query_end = std::clamp(queries.EndPosition(q), position, next);
      float* partial = partials + q * stride;
      workspace.rescales[q] = SoftmaxStep(
          block, query_begin - block.page_position, query_end - block.page_position, value_scales,
          workspace.scores + q * kBlockTokens, partial[largest_at], partial[largest_at + 1]);
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
  const auto old_factor = Exp(d, hn::Sub(old_largest, largest));
  const auto next_factor = Exp(d, hn::Sub(next_largest, largest));
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
    Scale(merged, 1.0f / merged[largest_at + 1], head_dim, queries.Output(q));
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(GatherSpan);
HWY_EXPORT(CombineSpans);

namespace attention {

size_t SpanWorkspaceBytes(size_t num_queries, size_t head_dim) {
  return SpanWorkspace(nullptr, num_queries, head_dim).bytes;
}

void GatherSpan(const HeadQueries& queries, const HeadCache& cache, size_t begin, size_t end,
                std::byte* workspace, float* partials) {
  HWY_DYNAMIC_DISPATCH(GatherSpan)(queries, cache, begin, end, workspace, partials);
}

void CombineSpans(const HeadQueries& queries, float* partials) {
  HWY_DYNAMIC_DISPATCH(CombineSpans)(queries, partials);
}

}  // namespace attention
}  // namespace cria::ops
#endif  // HWY_ONCE
