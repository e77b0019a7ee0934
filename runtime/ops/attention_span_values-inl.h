// The values of few queries, for attention_span.cc, compiled once per instruction set.

#if defined(CRIA_OPS_ATTENTION_SPAN_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_ATTENTION_SPAN_VALUES_INL_H_
#undef CRIA_OPS_ATTENTION_SPAN_VALUES_INL_H_
#else
#define CRIA_OPS_ATTENTION_SPAN_VALUES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/attention_kernels.h"
#include "ops/attention_span_scores-inl.h"
#include "ops/attention_workspaces.h"
#include "ops/dot_products-inl.h"
#include "ops/kv_elements-inl.h"
#include "ops/value_digits-inl.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

// As many as fit into the registers; on x86, fewer, because there each takes code for three
// instruction sets.
inline constexpr size_t kValueQueries = HWY_ARCH_X86 ? 4 : 6;
inline constexpr size_t kValueTile = kHas32Registers ? 4 : 2;  // Vectors of one value.

// One tile of queries, whose weights are in the workspace and whose partials begin at `partials`.
template <typename T>
struct ValueTile {
  const SpanWorkspace& workspace;
  const Block& block;
  size_t first_query;
  size_t head_dim;
  const T* values;     // The block's page: [kBlockTokens][head_dim]
  const T* next_keys;  // To prefetch.
  float* partials;

  size_t stride() const { return attention::PartialFloats(head_dim); }
  bool IsFirstPass(size_t j) const { return first_query == 0 && j == 0; }
};

// Adds kVectors vectors of every value, from dimension `j` on, to the accumulators of kQueries
// queries. kIsRest: head_dim ends inside these vectors.
template <size_t kQueries, size_t kVectors, bool kIsRest, typename T>
HWY_INLINE void AddValueColumns(const ValueTile<T>& tile, size_t j) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t head_dim = tile.head_dim;
  const size_t stride = tile.stride();
  const T* HWY_RESTRICT values = tile.values;
  float* HWY_RESTRICT partials = tile.partials;
  const float* HWY_RESTRICT weights = tile.workspace.scores + tile.first_query * kBlockTokens;
  V sums[kQueries][kVectors];
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
    const V rescale = hn::Set(d, tile.workspace.rescales[tile.first_query + q]);
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      sums[q][v] = hn::Mul(hn::Load(d, partials + q * stride + j + v * kLanes), rescale);
    }
  }
  const bool is_first_pass = tile.IsFirstPass(j);
  for (size_t k = tile.block.begin; k < tile.block.end; ++k) {
    if (is_first_pass) PrefetchRows(tile.next_keys, k, 1, head_dim);
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
#pragma GCC unroll 6
    for (size_t q = 0; q < kQueries; ++q) {
      const V weight = hn::Set(d, weights[q * kBlockTokens + k]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sums[q][v] = hn::MulAdd(weight, value[v], sums[q][v]);
      }
    }
  }
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      hn::Store(sums[q][v], d, partials + q * stride + j + v * kLanes);
    }
  }
}

template <size_t kQueries, typename T>
void AddValues(const ValueTile<T>& tile) {
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  size_t j = 0;
  for (; j + kValueTile * kLanes <= tile.head_dim; j += kValueTile * kLanes) {
    AddValueColumns<kQueries, kValueTile, false>(tile, j);
  }
  for (; j + kLanes <= tile.head_dim; j += kLanes) {
    AddValueColumns<kQueries, 1, false>(tile, j);
  }
  if (j < tile.head_dim) AddValueColumns<kQueries, 1, true>(tile, j);
}

// The digits of the weights of a group of positions for one query.
class QueryDigits {
 public:
  using DI32 = hn::ScalableTag<int32_t>;
  using VI32 = hn::VFromD<DI32>;
  using VValues = hn::VFromD<DValues>;

#if CRIA_OPS_IS_ARM_DOT_TARGET
  HWY_INLINE explicit QueryDigits(const float* digits)
      : digits_(vreinterpret_s8_f32(vld1_f32(digits))) {}
  template <size_t kDigit>
  HWY_INLINE VI32 Add(VValues values, VI32 sum) const {
    return VI32(vdotq_lane_s32(sum.raw, values.raw, digits_, kDigit));
  }

 private:
  int8x8_t digits_;
#else
  HWY_INLINE explicit QueryDigits(const float* digits) {
#pragma GCC unroll 2
    for (size_t i = 0; i < kDigits; ++i) {
      digits_[i] = hn::BitCast(DDigits(), hn::Set(hn::ScalableTag<float>(), digits[i]));
    }
  }
  template <size_t kDigit>
  HWY_INLINE VI32 Add(VValues values, VI32 sum) const {
    return AddProducts(DI32(), digits_[kDigit], values, sum);
  }

 private:
  hn::VFromD<DDigits> digits_[kDigits];
#endif
};

// Adds the dimensions of int8 values that fill kParts vectors of sums, from dimension `j` on, to
// the accumulators of kQueries queries, whose weights are digits. kIsRest: head_dim ends inside
// them.
template <size_t kQueries, size_t kParts, bool kIsRest>
HWY_INLINE void AddInt8ValueColumns(const ValueTile<int8_t>& tile, size_t j) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const hn::Repartition<int8_t, decltype(d)> di8;
  const hn::CappedTag<int8_t, hn::MaxLanes(di8) * kParts / 4> di8_row;
  using V = hn::VFromD<decltype(d)>;
  using VI32 = hn::VFromD<decltype(di32)>;
  using VValues = QueryDigits::VValues;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t head_dim = tile.head_dim;
  const int8_t* HWY_RESTRICT values = tile.values + j;
  const float* HWY_RESTRICT weights = tile.workspace.scores + tile.first_query * kBlockTokens;
  VI32 sums[kQueries][kDigits][kParts];
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (size_t digit = 0; digit < kDigits; ++digit) {
#pragma GCC unroll 4
      for (size_t i = 0; i < kParts; ++i) sums[q][digit][i] = hn::Zero(di32);
    }
  }
  const bool is_first_pass = tile.IsFirstPass(j);
  for (size_t k = tile.block.begin / kGroup * kGroup; k < tile.block.end; k += kGroup) {
    if (is_first_pass) PrefetchRows(tile.next_keys, k, kGroup, head_dim);
    hn::VFromD<decltype(di8_row)> rows[kGroup];
    VValues parts[kParts];
#pragma GCC unroll 4
    for (size_t i = 0; i < kGroup; ++i) {
      const int8_t* p = values + (k + i) * head_dim;
      rows[i] = kIsRest ? hn::LoadN(di8_row, p, head_dim - j) : hn::LoadU(di8_row, p);
    }
    InterleaveRows(di8_row, rows, parts);
#pragma GCC unroll 6
    for (size_t q = 0; q < kQueries; ++q) {
      const QueryDigits digits(weights + q * kBlockTokens + k);
      ForEachConstant<kDigits>([&]<size_t kDigit>() CRIA_OPS_INLINE_LAMBDA {
#pragma GCC unroll 4
        for (size_t i = 0; i < kParts; ++i) {
          sums[q][kDigit][i] = digits.Add<kDigit>(parts[i], sums[q][kDigit][i]);
        }
      });
    }
  }
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
    const size_t query = tile.first_query + q;
    const V code_scale = hn::Set(d, tile.workspace.code_scales[query]);
    const V rescale = hn::Set(d, tile.workspace.rescales[query]);
    float* HWY_RESTRICT partial = tile.partials + q * tile.stride() + j;
    V added[kParts];
#pragma GCC unroll 4
    for (size_t i = 0; i < kParts; ++i) {
      VI32 sum = sums[q][0][i];
      if constexpr (kDigits == 2) sum = hn::Add(hn::ShiftLeft<8>(sum), sums[q][1][i]);
      added[i] = hn::ConvertTo(d, sum);
    }
    if constexpr (!kHasPairProducts) TransposeBlocks(d, added);
#pragma GCC unroll 4
    for (size_t i = 0; i < kParts; ++i) {
      if (kIsRest && j + i * kLanes >= head_dim) break;
      const V old = hn::Mul(hn::Load(d, partial + i * kLanes), rescale);
      hn::Store(hn::MulAdd(added[i], code_scale, old), d, partial + i * kLanes);
    }
  }
}

// For more queries, registers hold half as many dimensions; pairs of positions are half as many.
template <size_t kQueries>
void AddInt8Values(const ValueTile<int8_t>& tile) {
  constexpr size_t kParts = kQueries <= 3 && !kHasPairProducts ? 4 : 2;
  constexpr size_t kStep = hn::MaxLanes(hn::ScalableTag<float>()) * kParts;
  size_t j = 0;
  for (; j + kStep <= tile.head_dim; j += kStep) {
    AddInt8ValueColumns<kQueries, kParts, false>(tile, j);
  }
  if (j < tile.head_dim) AddInt8ValueColumns<kQueries, kParts, true>(tile, j);
}

// Prefetches the keys from `next_row` on.
inline void AddValueBlock(const SpanWorkspace& workspace, const HeadQueries& queries,
                          const HeadCache& cache, const Block& block, size_t next_row,
                          float* partials) {
  const size_t head_dim = queries.head_dim;
  WithAttendedElement(cache.type, [&]<typename T>() HWY_ATTR {
    constexpr bool kIsInteger = kHasIntegerWeights && std::is_same_v<T, int8_t>;
    // With several blocks of 128 bits, dot products have no vectors of half as many dimensions.
    constexpr bool kHasOnlyWholeVectors =
        kHasDotProducts && hn::MaxLanes(hn::ScalableTag<float>()) > 4;
    constexpr size_t kMaxQueries = kIsInteger && kHasOnlyWholeVectors ? 3 : kValueQueries;
    ForEachQueryTile<kMaxQueries>(queries.num_queries(), [&]<size_t kQueries>(size_t q) HWY_ATTR {
      const ValueTile<T> tile = {
          .workspace = workspace,
          .block = block,
          .first_query = q,
          .head_dim = head_dim,
          .values = static_cast<const T*>(cache.values) + block.page_row * head_dim,
          .next_keys = static_cast<const T*>(cache.keys) + next_row * head_dim,
          .partials = partials + q * attention::PartialFloats(head_dim)};
      if constexpr (kIsInteger) {
        AddInt8Values<kQueries>(tile);
      } else {
        AddValues<kQueries>(tile);
      }
    });
  });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_ATTENTION_SPAN_VALUES_INL_H_
