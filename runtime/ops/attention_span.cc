// Attention for few queries, where the time goes into reading the cache: each key and each value is
// loaded once for up to four queries, and the lanes of vectors are a head's dimensions.

#include <algorithm>

#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_span.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/kv_elements-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::HeadCache;
using attention::HeadQueries;
using attention::kBlockTokens;
using attention::kMaskedScore;
using attention::SpanWorkspace;

// As many as fit into the registers.
inline constexpr size_t kScoreQueries = kHas32Registers ? 4 : 2;
inline constexpr size_t kKeyTile = 4;
inline constexpr size_t kValueQueries = 4;
inline constexpr size_t kValueTile = kHas32Registers ? 4 : 2;  // Vectors of one value.
inline constexpr size_t kLineBytes = 64;

// Prefetches `count` rows from `row` on. A block is prefetched while the one before it is
// processed: it is too short for the processor's own prefetching, which starts again at every
// block.
template <typename T>
HWY_INLINE void PrefetchRows(const T* rows, size_t row, size_t count, size_t head_dim) {
  const char* begin = reinterpret_cast<const char*>(rows + row * head_dim);
  const size_t bytes = count * head_dim * sizeof(T);
  for (size_t offset = 0; offset < bytes; offset += kLineBytes) hwy::Prefetch(begin + offset);
}

// How keys of type T are multiplied by queries: as floats, except int8 keys.
template <typename T>
struct Product {
  using Query = float;
  using Sum = float;
  static const float* Queries(const SpanWorkspace& workspace) { return workspace.queries; }
  static size_t Stride(const SpanWorkspace& workspace) { return workspace.padded_floats; }
  template <class D>
  static HWY_INLINE auto LoadKey(D d, const T* p) {
    return LoadFloats(d, p);
  }
  template <class D>
  static HWY_INLINE auto LoadKeyN(D d, const T* p, size_t count) {
    return LoadFloatsN(d, p, count);
  }
  template <class D, class V>
  static HWY_INLINE V Add(D, V key, V query, V sum) {
    return hn::MulAdd(query, key, sum);
  }
  // The scale factors of the scores of up to four keys from `row` on; `count` is their number.
  static HWY_INLINE int LoadScales(const float*, size_t, size_t) { return 0; }
  // Four scores of query `q`, scaled.
  template <class V>
  static HWY_INLINE V Scores(const SpanWorkspace&, size_t, V sums, int) {
    return sums;
  }
};

template <>
struct Product<int8_t> {
  using Query = int8_t;
  using Sum = int32_t;
  static const int8_t* Queries(const SpanWorkspace& workspace) { return workspace.int8_queries; }
  static size_t Stride(const SpanWorkspace& workspace) { return workspace.padded_bytes; }
  template <class D>
  static HWY_INLINE auto LoadKey(D d, const int8_t* p) {
    return Bias(d, hn::LoadU(d, p));
  }
  template <class D>
  static HWY_INLINE auto LoadKeyN(D d, const int8_t* p, size_t count) {
    return Bias(d, hn::LoadN(d, p, count));
  }
  template <class D, class VKey, class VQuery, class V>
  static HWY_INLINE V Add(D d, VKey key, VQuery query, V sum) {
    return DotQuads(d, key, query, sum);
  }
  static HWY_INLINE auto LoadScales(const float* key_scales, size_t row, size_t count) {
    return hn::LoadN(hn::CappedTag<float, 4>(), key_scales + row, count);
  }
  template <class V, class VF>
  static HWY_INLINE VF Scores(const SpanWorkspace& workspace, size_t q, V sums, VF key_scales) {
    const hn::DFromV<VF> d;
    const auto dots = hn::Sub(sums, hn::Set(hn::DFromV<V>(), workspace.query_biases[q]));
    const auto query_scale = hn::Set(d, workspace.query_scales[q]);
    return hn::Mul(hn::Mul(hn::ConvertTo(d, dots), query_scale), key_scales);
  }
};

// Computes the scores of kQueries queries and the `num_keys` keys, up to kBlockTokens, from `row`
// on. Writes scores up to the next multiple of kKeyTile; those after num_keys have no meaning.
template <size_t kQueries, typename T>
void Score(const SpanWorkspace& workspace, size_t first_query, size_t head_dim,
           const HeadCache& cache, size_t row, size_t num_keys) {
  using P = Product<T>;
  using Query = typename P::Query;
  const hn::ScalableTag<typename P::Sum> d;
  const hn::Repartition<Query, decltype(d)> dq;
  using V = hn::VFromD<decltype(d)>;
  const hn::CappedTag<float, 4> d4;
  constexpr size_t kLanes = hn::MaxLanes(dq);
  const size_t stride = P::Stride(workspace);
  const Query* HWY_RESTRICT queries = P::Queries(workspace) + first_query * stride;
  const T* HWY_RESTRICT keys = static_cast<const T*>(cache.keys) + row * head_dim;
  const T* values = static_cast<const T*>(cache.values) + row * head_dim;
  const float* HWY_RESTRICT key_scales = cache.key_scales;
  float* HWY_RESTRICT scores = workspace.scores + first_query * kBlockTokens;

  for (size_t k = 0; k < num_keys; k += kKeyTile) {
    if (first_query == 0) PrefetchRows(values, k, kKeyTile, head_dim);
    const T* key[kKeyTile];
    V sums[kQueries][kKeyTile];
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeyTile; ++i) {
      key[i] = keys + std::min(k + i, num_keys - 1) * head_dim;
#pragma GCC unroll 4
      for (size_t q = 0; q < kQueries; ++q) sums[q][i] = hn::Zero(d);
    }
    const auto accumulate = [&](size_t j, auto load) HWY_ATTR {
      hn::VFromD<decltype(dq)> query[kQueries];
#pragma GCC unroll 4
      for (size_t q = 0; q < kQueries; ++q) query[q] = hn::Load(dq, queries + q * stride + j);
#pragma GCC unroll 4
      for (size_t i = 0; i < kKeyTile; ++i) {
        const auto loaded = load(key[i] + j);
#pragma GCC unroll 4
        for (size_t q = 0; q < kQueries; ++q) {
          sums[q][i] = P::Add(d, loaded, query[q], sums[q][i]);
        }
      }
    };
    size_t j = 0;
    for (; j + kLanes <= head_dim; j += kLanes) {
      accumulate(j, [dq](const T* p) HWY_ATTR { return P::LoadKey(dq, p); });
    }
    if (j < head_dim) {
      const size_t rest = head_dim - j;
      accumulate(j, [dq, rest](const T* p) HWY_ATTR { return P::LoadKeyN(dq, p, rest); });
    }
    const auto scales = P::LoadScales(key_scales, row + k, num_keys - k);
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q) {
      const auto sum = SumsOfFour(d, sums[q][0], sums[q][1], sums[q][2], sums[q][3]);
      const auto score = P::Scores(workspace, first_query + q, sum, scales);
      hn::Store(score, d4, scores + q * kBlockTokens + k);
    }
  }
}

// Masks the scores up to `padded_scores`, a multiple of the vector, except those in [begin, end).
HWY_INLINE void MaskScores(size_t padded_scores, size_t begin, size_t end,
                           float* HWY_RESTRICT scores) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const auto first = hn::Set(di32, static_cast<int32_t>(begin));
  const auto past_last = hn::Set(di32, static_cast<int32_t>(end));
  for (size_t k = 0; k < padded_scores; k += hn::MaxLanes(d)) {
    const auto position = hn::Iota(di32, static_cast<int32_t>(k));
    const auto is_out = hn::Or(hn::Lt(position, first), hn::Ge(position, past_last));
    const auto score = hn::Load(d, scores + k);
    hn::Store(hn::IfThenElse(hn::RebindMask(d, is_out), hn::Set(d, kMaskedScore), score), d,
              scores + k);
  }
}

// One step of the online softmax for one query, for the scores in [begin, end) of its `num_scores`
// scores. Replaces them by exp(score - largest), times the values' scales if there are any, so that
// values only need to be converted; the other scores become 0. Returns the factor of earlier sums.
HWY_INLINE float SoftmaxStep(size_t num_scores, size_t begin, size_t end, const float* value_scales,
                             float* HWY_RESTRICT scores, float& largest, float& sum) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t padded_scores = attention::RoundUp(num_scores, kLanes);
  if (begin != 0 || end != padded_scores) MaskScores(padded_scores, begin, end, scores);
  auto maxima = hn::Load(d, scores);
  for (size_t k = kLanes; k < num_scores; k += kLanes) {
    maxima = hn::Max(maxima, hn::Load(d, scores + k));
  }
  const float new_largest = std::max(largest, hn::ReduceMax(d, maxima));
  const auto shift = hn::Set(d, new_largest);
  auto sums = hn::Zero(d);
  for (size_t k = 0; k < num_scores; k += kLanes) {
    auto weight = Exp(d, hn::Sub(hn::Load(d, scores + k), shift));
    sums = hn::Add(sums, weight);
    if (value_scales != nullptr) {
      weight = hn::Mul(weight, hn::LoadN(d, value_scales + k, num_scores - k));
    }
    hn::Store(weight, d, scores + k);
  }
  // Before the first step, there are no sums.
  const float rescale =
      largest == kMaskedScore ? 0.0f : hn::GetLane(Exp(d, hn::Set(d, largest - new_largest)));
  sum = sum * rescale + hn::ReduceSum(d, sums);
  largest = new_largest;
  return rescale;
}

// For kQueries queries, whose partials begin at `partials`: adds kVectors vectors of every value,
// from dimension `j` on, to the accumulators. kIsRest: head_dim ends inside these vectors.
template <size_t kQueries, size_t kVectors, bool kIsRest, typename T>
HWY_INLINE void AddValueColumns(const SpanWorkspace& workspace, size_t first_query, size_t head_dim,
                                size_t j, const T* HWY_RESTRICT values, const T* next_keys,
                                size_t num_values, float* HWY_RESTRICT partials) {
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
  for (size_t k = 0; k < num_values; ++k) {
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
               const T* next_keys, size_t num_values, float* partials) {
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  partials += first_query * attention::PartialFloats(head_dim);
  size_t j = 0;
  for (; j + kValueTile * kLanes <= head_dim; j += kValueTile * kLanes) {
    AddValueColumns<kQueries, kValueTile, false>(workspace, first_query, head_dim, j, values,
                                                 next_keys, num_values, partials);
  }
  for (; j + kLanes <= head_dim; j += kLanes) {
    AddValueColumns<kQueries, 1, false>(workspace, first_query, head_dim, j, values, next_keys,
                                        num_values, partials);
  }
  if (j < head_dim) {
    AddValueColumns<kQueries, 1, true>(workspace, first_query, head_dim, j, values, next_keys,
                                       num_values, partials);
  }
}

// Calls `run.template operator()<kQueries>(first_query)` for tiles of up to kMaxQueries that cover
// all queries.
template <size_t kMaxQueries, typename Run>
HWY_INLINE void ForEachQueryTile(size_t num_queries, const Run& run) {
  size_t q = 0;
  for (; q + kMaxQueries <= num_queries; q += kMaxQueries) {
    run.template operator()<kMaxQueries>(q);
  }
  if constexpr (kMaxQueries > 2) {
    for (; q + 2 <= num_queries; q += 2) run.template operator()<2>(q);
  }
  for (; q < num_queries; ++q) run.template operator()<1>(q);
}

// output = input * factor, or output += input * factor.
template <bool kAdds>
HWY_INLINE void Scale(const float* HWY_RESTRICT input, float factor, size_t size,
                      float* HWY_RESTRICT output) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto factors = hn::Set(d, factor);
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const auto old = kAdds ? hn::LoadU(d, output + i) : hn::Zero(d);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, input + i), factors, old), d, output + i);
  }
  for (; i < size; ++i) output[i] = (kAdds ? output[i] : 0.0f) + input[i] * factor;
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
      Scale<false>(input, scale, head_dim, output);
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

void ScoreBlock(const SpanWorkspace& workspace, const HeadQueries& queries, const HeadCache& cache,
                size_t row, size_t num_keys) {
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    ForEachQueryTile<kScoreQueries>(queries.num_queries(), [&]<size_t kQueries>(size_t q) HWY_ATTR {
      Score<kQueries, T>(workspace, q, queries.head_dim, cache, row, num_keys);
    });
  });
}

// Prefetches the keys from `next_row` on.
void AddValueBlock(const SpanWorkspace& workspace, const HeadQueries& queries,
                   const HeadCache& cache, size_t row, size_t next_row, size_t num_values,
                   float* partials) {
  const size_t head_dim = queries.head_dim;
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    const T* values = static_cast<const T*>(cache.values) + row * head_dim;
    const T* next_keys = static_cast<const T*>(cache.keys) + next_row * head_dim;
    ForEachQueryTile<kValueQueries>(queries.num_queries(), [&]<size_t kQueries>(size_t q) HWY_ATTR {
      AddValues<kQueries>(workspace, q, head_dim, values, next_keys, num_values, partials);
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
  size_t next_row = cache.table.Row(begin);
  for (size_t block = begin, next; block < end; block = next) {
    next = attention::BlockEnd(block, end);
    const size_t num_tokens = next - block;
    const size_t row = next_row;
    next_row = next < last_end ? cache.table.Row(next) : next_head_row;
    ScoreBlock(workspace, queries, cache, row, num_tokens);
    for (size_t q = 0; q < num_queries; ++q) {
      const size_t query_begin = std::clamp(queries.BeginPosition(q), block, next);
      const size_t query_end = std::clamp(queries.EndPosition(q), block, next);
      float* scores = workspace.scores + q * kBlockTokens;
      float* partial = partials + q * stride;
      const float* value_scales = cache.type == KvType::kInt8 ? cache.value_scales + row : nullptr;
      workspace.rescales[q] =
          SoftmaxStep(num_tokens, query_begin - block, query_end - block, value_scales, scores,
                      partial[largest_at], partial[largest_at + 1]);
    }
    AddValueBlock(workspace, queries, cache, row, next_row, num_tokens, partials);
  }
}

void CombineSpans(const HeadQueries& queries, const float* partials, size_t span_tokens) {
  const hn::ScalableTag<float> d;
  const size_t head_dim = queries.head_dim;
  const size_t stride = attention::PartialFloats(head_dim);
  const size_t span_stride = queries.num_queries() * stride;
  const size_t largest_at = stride - attention::kPaddingFloats;
  const size_t first_span = queries.FirstSpan();
  for (size_t q = 0; q < queries.num_queries(); ++q) {
    const size_t num_tokens = queries.EndPosition(q) - first_span;
    const float* first = partials + q * stride;
    float* output = queries.Output(q);
    if (num_tokens <= span_tokens) {
      Scale<false>(first, 1.0f / first[largest_at + 1], head_dim, output);
      continue;
    }
    const float* end = first + (num_tokens + span_tokens - 1) / span_tokens * span_stride;
    float largest = kMaskedScore;
    for (const float* partial = first; partial != end; partial += span_stride) {
      largest = std::max(largest, partial[largest_at]);
    }
    const auto weight = [&](const float* partial) HWY_ATTR {
      return hn::GetLane(Exp(d, hn::Set(d, partial[largest_at] - largest)));
    };
    float sum = 0.0f;
    for (const float* partial = first; partial != end; partial += span_stride) {
      sum += weight(partial) * partial[largest_at + 1];
    }
    Scale<false>(first, weight(first) / sum, head_dim, output);
    for (const float* partial = first + span_stride; partial != end; partial += span_stride) {
      Scale<true>(partial, weight(partial) / sum, head_dim, output);
    }
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

void CombineSpans(const HeadQueries& queries, const float* partials, size_t span_tokens) {
  HWY_DYNAMIC_DISPATCH(CombineSpans)(queries, partials, span_tokens);
}

}  // namespace attention
}  // namespace cria::ops
#endif  // HWY_ONCE
