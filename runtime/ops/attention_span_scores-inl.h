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

#include "core/numeric.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/attention_kernels.h"
#include "ops/attention_workspaces.h"
#include "ops/dot_products-inl.h"
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
inline constexpr size_t kScoreQueries = !kHas32Registers ? 2 : HWY_ARCH_X86 ? 4 : 6;
inline constexpr size_t kKeyVectors = 4;
inline constexpr size_t kLineBytes = 64;

// Prefetches `count` rows from `row` on. A block is prefetched while the one before it is
// processed: it is too short for the processor's own prefetching, which starts again at every
// block.
template <typename T>
HWY_INLINE void PrefetchRows(const T* rows, size_t row, size_t count, size_t head_dim) {
  const char* begin = reinterpret_cast<const char*>(rows + row * head_dim);
  const size_t bytes = count * head_dim * sizeof(T);
  // On x86-64, this made decoding with floats from memory 8 to 20% slower.
  constexpr size_t kUnrolledLines = HWY_ARCH_ARM ? 4 : 1;
  size_t offset = 0;
  for (; offset + kUnrolledLines * kLineBytes <= bytes; offset += kUnrolledLines * kLineBytes) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kUnrolledLines; ++i) hwy::Prefetch(begin + offset + i * kLineBytes);
  }
  for (; offset < bytes; offset += kLineBytes) hwy::Prefetch(begin + offset);
}

// Calls `run.template operator()<kQueries>(first_query)` for as few tiles of up to kMaxQueries as
// cover all queries, and of nearly equal size.
template <size_t kMaxQueries, typename Run>
HWY_INLINE void ForEachQueryTile(size_t num_queries, const Run& run) {
  static_assert(kMaxQueries >= 2 && kMaxQueries <= 6 && kMaxQueries != 5);
  for (size_t q = 0, rest = DivideRoundingUp(num_queries, kMaxQueries); rest > 0; --rest) {
    const size_t size = DivideRoundingUp(num_queries - q, rest);
    if constexpr (kMaxQueries > 4) {
      if (size == 6) run.template operator()<6>(q);
      if (size == 5) run.template operator()<5>(q);
    }
    if constexpr (kMaxQueries > 3) {
      if (size == 4) run.template operator()<4>(q);
    }
    if constexpr (kMaxQueries > 2) {
      if (size == 3) run.template operator()<3>(q);
    }
    if (size == 2) run.template operator()<2>(q);
    if (size == 1) run.template operator()<1>(q);
    q += size;
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
  // The scales of a query, and of a tile's keys.
  static HWY_INLINE int LoadQueryScale(const SpanWorkspace&, size_t) { return 0; }
  static HWY_INLINE int LoadKeyScales(const float*, size_t) { return 0; }
  // A tile's scores of query `q`, scaled.
  template <class V>
  static HWY_INLINE V Scores(const SpanWorkspace&, size_t, V sums, int, int) {
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
    return SumsOfLanes(d, sums[0], sums[1], sums[2], sums[3]);
  }
  static HWY_INLINE auto LoadQueryScale(const SpanWorkspace& workspace, size_t q) {
    return hn::Set(DScores(), workspace.query_scales[q]);
  }
  static HWY_INLINE auto LoadKeyScales(const float* scales, size_t k) {
    return hn::LoadU(DScores(), scales + k);
  }
  template <class V, class VF>
  static HWY_INLINE VF Scores(const SpanWorkspace& workspace, size_t q, V sums, VF query_scale,
                              VF key_scales) {
    auto dots = sums;
    if constexpr (kDotBias != 0) {
      dots = hn::Sub(sums, hn::Set(hn::DFromV<V>(), workspace.query_biases[q]));
    }
    return hn::Mul(hn::Mul(hn::ConvertTo(DScores(), dots), query_scale), key_scales);
  }

 private:
  using DScores = hn::CappedTag<float, kKeyVectors>;
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
  const float* HWY_RESTRICT key_scales =
      cache.key_scales == nullptr ? nullptr : cache.key_scales + block.page_row;
  float* HWY_RESTRICT scores = workspace.scores + first_query * kBlockTokens;

  decltype(P::LoadQueryScale(workspace, 0)) query_scales[kQueries];
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
    query_scales[q] = P::LoadQueryScale(workspace, first_query + q);
  }
  const size_t end = block.end;
  const size_t last = end - 1;
  for (size_t k = block.begin / kKeyTile * kKeyTile; k < end; k += kKeyTile) {
    if (first_query == 0) PrefetchRows(values, k, kKeyTile, head_dim);
    // The page has memory for a whole tile, but reading many rows that nothing else reads takes
    // longer than reading the last one again.
    const T* key[kKeyTile];
    V sums[kQueries][kKeyVectors];
#pragma GCC unroll 16
    for (size_t i = 0; i < kKeyTile; ++i) {
      key[i] = keys + (kBlocks == 1 ? k + i : std::min(k + i, last)) * head_dim;
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kKeyVectors; ++i) {
#pragma GCC unroll 6
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
#pragma GCC unroll 6
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
    const auto tile_scales = P::LoadKeyScales(key_scales, k);
#pragma GCC unroll 6
    for (size_t q = 0; q < kQueries; ++q) {
      const auto score =
          P::Scores(workspace, first_query + q, P::Sums(d, sums[q]), query_scales[q], tile_scales);
      hn::Store(score, d_scores, scores + q * kBlockTokens + k);
    }
  }
}

inline void ScoreBlock(const SpanWorkspace& workspace, const HeadQueries& queries,
                       const HeadCache& cache, const Block& block) {
  WithAttendedElement(cache.type, [&]<typename T>() HWY_ATTR {
    ForEachQueryTile<kScoreQueries>(queries.num_queries(), [&]<size_t kQueries>(size_t q) HWY_ATTR {
      Score<kQueries, T>(workspace, q, queries.head_dim, cache, block);
    });
  });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_ATTENTION_SPAN_SCORES_INL_H_
