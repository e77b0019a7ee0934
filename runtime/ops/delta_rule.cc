#include "ops/delta_rule.h"

#include <algorithm>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/delta_rule.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DeltaTag = hn::CappedTag<float, kDeltaColumns>;
using DeltaVector = hn::VFromD<DeltaTag>;
inline constexpr size_t kDeltaLanes = hn::MaxLanes(DeltaTag());
inline constexpr size_t kDeltaVectors = kDeltaColumns / kDeltaLanes;

// The first `count` of kDeltaColumns numbers; the others are zeros.
HWY_INLINE void LoadColumns(const float* from, size_t count, DeltaVector* HWY_RESTRICT vectors) {
  const DeltaTag d;
  for (size_t i = 0; i < kDeltaVectors; ++i) {
    const size_t first = i * kDeltaLanes;
    vectors[i] = first >= count ? hn::Zero(d) : hn::LoadN(d, from + first, count - first);
  }
}

HWY_INLINE void StoreColumns(const DeltaVector* HWY_RESTRICT vectors, size_t count, float* to) {
  const DeltaTag d;
  for (size_t i = 0; i < kDeltaVectors && i * kDeltaLanes < count; ++i) {
    hn::StoreN(vectors[i], d, to + i * kDeltaLanes, count - i * kDeltaLanes);
  }
}

// One token's part of a block of columns.
struct DeltaToken {
  const float* key;
  float* delta;
  float decay;
};

HWY_INLINE DeltaToken TokenOf(const DeltaUpdates& updates, size_t row, size_t column) {
  const size_t offset = row * updates.stride;
  return {updates.keys + offset, updates.deltas + offset + column, updates.decays[offset]};
}

// One pass over a block of columns of the state: `target` becomes `source` after `token`, and with
// kReads, `sums` become the products of that with a key and a query.
template <bool kReads>
HWY_INLINE void Pass(size_t key_dim, const float* source, float* target, const DeltaToken& token,
                     size_t count, const float* key, const float* query,
                     DeltaVector* HWY_RESTRICT key_sums, DeltaVector* HWY_RESTRICT query_sums) {
  const DeltaTag d;
  DeltaVector delta[kDeltaVectors];
  LoadColumns(token.delta, count, delta);
  const DeltaVector decay = hn::Set(d, token.decay);
  DeltaVector key_sum[kDeltaVectors];
  DeltaVector query_sum[kDeltaVectors];
  for (size_t j = 0; j < kDeltaVectors; ++j) key_sum[j] = query_sum[j] = hn::Zero(d);
  for (size_t i = 0; i < key_dim; ++i) {
    for (size_t j = 0; j < kDeltaVectors; ++j) {
      const size_t place = i * kDeltaColumns + j * kDeltaLanes;
      const DeltaVector before = hn::Mul(hn::LoadU(d, source + place), decay);
      const DeltaVector state = hn::MulAdd(hn::Set(d, token.key[i]), delta[j], before);
      hn::StoreU(state, d, target + place);
      if constexpr (kReads) {
        key_sum[j] = hn::MulAdd(hn::Set(d, key[i]), state, key_sum[j]);
        query_sum[j] = hn::MulAdd(hn::Set(d, query[i]), state, query_sum[j]);
      }
    }
  }
  if constexpr (kReads) {
    for (size_t j = 0; j < kDeltaVectors; ++j) {
      key_sums[j] = key_sum[j];
      query_sums[j] = query_sum[j];
    }
  }
}

// Computes the delta and the output of a row from the products of the state before it.
HWY_INLINE void FinishRow(const DeltaToken& token, float beta, float key_product, size_t count,
                          const DeltaVector* HWY_RESTRICT key_sums,
                          const DeltaVector* HWY_RESTRICT query_sums, float* output) {
  const DeltaTag d;
  DeltaVector delta[kDeltaVectors];
  DeltaVector result[kDeltaVectors];
  LoadColumns(token.delta, count, delta);
  const DeltaVector decay = hn::Set(d, token.decay);
  for (size_t j = 0; j < kDeltaVectors; ++j) {
    delta[j] = hn::Mul(hn::Set(d, beta), hn::NegMulAdd(decay, key_sums[j], delta[j]));
    result[j] = hn::MulAdd(hn::Set(d, key_product), delta[j], hn::Mul(decay, query_sums[j]));
  }
  StoreColumns(delta, count, token.delta);
  StoreColumns(result, count, output);
}

// Computes `count` columns from `column` on, whose state is `state`.
void RunColumns(const DeltaRuleHead& head, float* state, size_t column, size_t count,
                const DeltaUpdates& kept, const DeltaUpdates& rows, const DeltaReads& reads,
                size_t num_taken) {
  // The state after tokens that it does not take up.
  HWY_ALIGN float later[kMaxDeltaKeyDim * kDeltaColumns];
  if (head.is_empty) std::fill_n(state, head.key_dim * kDeltaColumns, 0.0f);
  const size_t num_tokens = kept.num_rows + rows.num_rows;
  const float* source = state;
  // Before the first token there is one that changes nothing.
  float no_delta[kDeltaColumns] = {};
  DeltaToken last = {kept.num_rows > 0 ? kept.keys : rows.keys, no_delta, 1.0f};
  // Each pass takes up the token before and computes a row. The last token is taken up only if the
  // state shall have it.
  for (size_t i = 0; i < std::max(num_tokens, num_taken + 1); ++i) {
    float* const target = i <= num_taken ? state : later;
    if (i < kept.num_rows || i >= num_tokens) {
      if (i > 0) {
        Pass<false>(head.key_dim, source, target, last, count, nullptr, nullptr, nullptr, nullptr);
        source = target;
      }
      if (i < num_tokens) last = TokenOf(kept, i, column);
      continue;
    }
    const size_t row = i - kept.num_rows;
    const DeltaToken token = TokenOf(rows, row, column);
    DeltaVector key_sums[kDeltaVectors];
    DeltaVector query_sums[kDeltaVectors];
    Pass<true>(head.key_dim, source, target, last, count, token.key,
               reads.queries + row * reads.query_stride, key_sums, query_sums);
    source = target;
    FinishRow(token, reads.betas[row * reads.gate_stride],
              reads.key_products[row * reads.gate_stride], count, key_sums, query_sums,
              reads.outputs + row * reads.output_stride + column);
    last = token;
  }
}

void DeltaRule(const DeltaRuleHead& head, const DeltaUpdates& kept, const DeltaUpdates& rows,
               const DeltaReads& reads, size_t num_taken) {
  float* state = head.state;
  for (size_t column = 0; column < head.value_dim; column += kDeltaColumns) {
    const size_t count = std::min(kDeltaColumns, head.value_dim - column);
    RunColumns(head, state, column, count, kept, rows, reads, num_taken);
    state += head.key_dim * kDeltaColumns;
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(DeltaRule);

void DeltaRule(const DeltaRuleHead& head, const DeltaUpdates& kept, const DeltaUpdates& rows,
               const DeltaReads& reads, size_t num_taken) {
  HWY_DYNAMIC_DISPATCH(DeltaRule)(head, kept, rows, reads, num_taken);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
