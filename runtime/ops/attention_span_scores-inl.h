// The scores of few queries, for attention_span.cc, compiled once per instruction set.

#if defined(CRIA_OPS_ATTENTION_SPAN_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_ATTENTION_SPAN_SCORES_INL_H_
#undef CRIA_OPS_ATTENTION_SPAN_SCORES_INL_H_
#else
#define CRIA_OPS_ATTENTION_SPAN_SCORES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/kv_elements-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

using attention::Block;
using attention::HeadCache;
using attention::HeadQueries;
using attention::kBlockTokens;
using attention::SpanWorkspace;

// As many as fit into the registers.
inline constexpr size_t kScoreQueries = kHas32Registers ? 4 : 2;
inline constexpr size_t kKeyVectors = 4;
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

inline void ScoreBlock(const SpanWorkspace& workspace, const HeadQueries& queries,
                       const HeadCache& cache, const Block& block) {
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    ForEachQueryTile<kScoreQueries>(queries.num_queries(), [&]<size_t kQueries>(size_t q) HWY_ATTR {
      Score<kQueries, T>(workspace, q, queries.head_dim, cache, block);
    });
  });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_ATTENTION_SPAN_SCORES_INL_H_
