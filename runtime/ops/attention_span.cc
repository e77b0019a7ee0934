// Attention for few queries, where the time goes into reading the cache: each key and each value is
// loaded once for up to four queries, and the lanes of vectors are a head's dimensions.

#include <algorithm>

#include "core/numeric.h"
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

using attention::Block;
using attention::HeadCache;
using attention::HeadQueries;
using attention::kBlockTokens;
using attention::kMaskedScore;
using attention::SpanWorkspace;

// As many as fit into the registers.
inline constexpr size_t kScoreQueries = kHas32Registers ? 4 : 2;
inline constexpr size_t kKeyVectors = 4;
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

// v[b] is a vector of key b; afterwards, it is the b-th blocks of 128 bits of all keys, in order.
template <class D, class V>
HWY_INLINE void TransposeBlocks(D d, V* v) {
  if constexpr (hn::MaxLanes(d) == 8) {
    const V lower = hn::ConcatLowerLower(d, v[1], v[0]);
    v[1] = hn::ConcatUpperUpper(d, v[1], v[0]);
    v[0] = lower;
  } else {
#if HWY_TARGET == HWY_AVX3_DL
    constexpr int kEven = 0x88;  // Blocks 0 and 2 of both.
    constexpr int kOdd = 0xdd;   // Blocks 1 and 3.
    const __m512 even01 = _mm512_shuffle_f32x4(v[0].raw, v[1].raw, kEven);
    const __m512 even23 = _mm512_shuffle_f32x4(v[2].raw, v[3].raw, kEven);
    const __m512 odd01 = _mm512_shuffle_f32x4(v[0].raw, v[1].raw, kOdd);
    const __m512 odd23 = _mm512_shuffle_f32x4(v[2].raw, v[3].raw, kOdd);
    v[0] = V{_mm512_shuffle_f32x4(even01, even23, kEven)};
    v[1] = V{_mm512_shuffle_f32x4(odd01, odd23, kEven)};
    v[2] = V{_mm512_shuffle_f32x4(even01, even23, kOdd)};
    v[3] = V{_mm512_shuffle_f32x4(odd01, odd23, kOdd)};
#else
    static_assert(hn::MaxLanes(d) == 4, "there is one key in a vector, or there are 2 or 4");
#endif
  }
}

// How keys of type T are multiplied by queries: as floats, except int8 keys. Every kBlocks keys are
// rearranged into as many vectors, which have the same elements of all of these keys: so a score is
// the same sum, in the same order, whatever the size of a vector is. Sums of int8 are exact.
template <typename T>
struct Product {
  using Query = float;
  using Sum = float;
  static constexpr size_t kBlocks = hn::MaxLanes(hn::ScalableTag<float>()) / 4;
  static const float* Queries(const SpanWorkspace& workspace) { return workspace.queries; }
  static size_t Stride(const SpanWorkspace& workspace) { return workspace.padded_floats; }
  template <class D>
  static HWY_INLINE auto LoadQuery(D d, const float* p) {
    return hn::LoadDup128(d, p);
  }
  template <class D>
  static HWY_INLINE auto LoadKey(D d, const T* p) {
    return LoadFloats(d, p);
  }
  template <class D>
  static HWY_INLINE auto LoadKeyN(D d, const T* p, size_t count) {
    return LoadFloatsN(d, p, count);
  }
  template <class D, class V>
  static HWY_INLINE void Rearrange(D d, V* keys) {
    TransposeBlocks(d, keys);
  }
  template <class D, class V>
  static HWY_INLINE V Add(D, V key, V query, V sum) {
    return hn::MulAdd(query, key, sum);
  }
  template <class D, class V>
  static HWY_INLINE V Sums(D d, const V (&sums)[kKeyVectors]) {
    return SumsWithinBlocks(d, sums[0], sums[1], sums[2], sums[3]);
  }
  // The scale factors of the scores of a tile's keys, of which `count` exist.
  static HWY_INLINE int LoadScales(const float*, size_t, size_t) { return 0; }
  // A tile's scores of query `q`, scaled.
  template <class V>
  static HWY_INLINE V Scores(const SpanWorkspace&, size_t, V sums, int) {
    return sums;
  }
};

template <>
struct Product<int8_t> {
  using Query = int8_t;
  using Sum = int32_t;
  static constexpr size_t kBlocks = 1;
  static const int8_t* Queries(const SpanWorkspace& workspace) { return workspace.int8_queries; }
  static size_t Stride(const SpanWorkspace& workspace) { return workspace.padded_bytes; }
  template <class D>
  static HWY_INLINE auto LoadQuery(D d, const int8_t* p) {
    return hn::Load(d, p);
  }
  template <class D>
  static HWY_INLINE auto LoadKey(D d, const int8_t* p) {
    return Bias(d, hn::LoadU(d, p));
  }
  template <class D>
  static HWY_INLINE auto LoadKeyN(D d, const int8_t* p, size_t count) {
    return Bias(d, hn::LoadN(d, p, count));
  }
  template <class D, class V>
  static HWY_INLINE void Rearrange(D, V*) {}
  template <class D, class VKey, class VQuery, class V>
  static HWY_INLINE V Add(D d, VKey key, VQuery query, V sum) {
    return DotQuads(d, key, query, sum);
  }
  template <class D, class V>
  static HWY_INLINE auto Sums(D d, const V (&sums)[kKeyVectors]) {
    return SumOfBlocks(d, SumsWithinBlocks(d, sums[0], sums[1], sums[2], sums[3]));
  }
  static HWY_INLINE auto LoadScales(const float* key_scales, size_t row, size_t count) {
    return hn::LoadN(hn::CappedTag<float, kKeyVectors>(), key_scales + row, count);
  }
  template <class V, class VF>
  static HWY_INLINE VF Scores(const SpanWorkspace& workspace, size_t q, V sums, VF key_scales) {
    const hn::DFromV<VF> d;
    const auto dots = hn::Sub(sums, hn::Set(hn::DFromV<V>(), workspace.query_biases[q]));
    const auto query_scale = hn::Set(d, workspace.query_scales[q]);
    return hn::Mul(hn::Mul(hn::ConvertTo(d, dots), query_scale), key_scales);
  }
};

// Computes the scores of kQueries queries and the block's keys. Writes all scores of the tiles that
// have one of these keys; the others have no meaning.
template <size_t kQueries, typename T>
void Score(const SpanWorkspace& workspace, size_t first_query, size_t head_dim,
           const HeadCache& cache, const Block& block) {
  using P = Product<T>;
  using Query = typename P::Query;
  constexpr size_t kBlocks = P::kBlocks;
  constexpr size_t kKeyTile = kKeyVectors * kBlocks;
  const hn::ScalableTag<typename P::Sum> d;
  const hn::Repartition<Query, decltype(d)> dq;
  using V = hn::VFromD<decltype(d)>;
  const hn::CappedTag<float, kKeyTile> d_scores;
  constexpr size_t kLanes = hn::MaxLanes(dq);
  const size_t stride = P::Stride(workspace);
  const Query* HWY_RESTRICT queries = P::Queries(workspace) + first_query * stride;
  const T* HWY_RESTRICT keys = static_cast<const T*>(cache.keys) + block.page_row * head_dim;
  const T* values = static_cast<const T*>(cache.values) + block.page_row * head_dim;
  const float* HWY_RESTRICT key_scales = cache.key_scales;
  float* HWY_RESTRICT scores = workspace.scores + first_query * kBlockTokens;

  const size_t last = block.end - 1;
  for (size_t k = block.begin / kKeyTile * kKeyTile; k < block.end; k += kKeyTile) {
    if (first_query == 0) PrefetchRows(values, k, kKeyTile, head_dim);
    const T* key[kKeyTile];
    V sums[kQueries][kKeyVectors];
#pragma GCC unroll 16
    for (size_t i = 0; i < kKeyTile; ++i) key[i] = keys + std::min(k + i, last) * head_dim;
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeyVectors; ++i) {
#pragma GCC unroll 4
      for (size_t q = 0; q < kQueries; ++q) sums[q][i] = hn::Zero(d);
    }
    // Block b of sums[q][i] belongs to key 4 * b + i, so that a tile's scores come out in order.
    const auto accumulate = [&](size_t j, auto load) HWY_ATTR {
#pragma GCC unroll 4
      for (size_t i = 0; i < kKeyVectors; ++i) {
        decltype(load(key[0])) elements[kBlocks];
#pragma GCC unroll 4
        for (size_t b = 0; b < kBlocks; ++b) elements[b] = load(key[kKeyVectors * b + i] + j);
        P::Rearrange(dq, elements);
#pragma GCC unroll 4
        for (size_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
          for (size_t q = 0; q < kQueries; ++q) {
            const auto query = P::LoadQuery(dq, queries + q * stride + j + 4 * b);
            sums[q][i] = P::Add(d, elements[b], query, sums[q][i]);
          }
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
    const auto scales = P::LoadScales(key_scales, block.page_row + k, block.end - k);
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q) {
      const auto score = P::Scores(workspace, first_query + q, P::Sums(d, sums[q]), scales);
      hn::Store(score, d_scores, scores + q * kBlockTokens + k);
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

void ScoreBlock(const SpanWorkspace& workspace, const HeadQueries& queries, const HeadCache& cache,
                const Block& block) {
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    ForEachQueryTile<kScoreQueries>(queries.num_queries(), [&]<size_t kQueries>(size_t q) HWY_ATTR {
      Score<kQueries, T>(workspace, q, queries.head_dim, cache, block);
    });
  });
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
