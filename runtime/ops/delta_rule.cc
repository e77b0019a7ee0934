#include "ops/delta_rule.h"

#include <algorithm>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/delta_rule.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/head_state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// TakeToken, and the products of `target` with a key and a query.
HWY_INLINE void TakeAndRead(size_t key_dim, const float* source, float* target,
                            const StateToken& token, size_t count, const float* key,
                            const float* query, StateVector* HWY_RESTRICT key_sums,
                            StateVector* HWY_RESTRICT query_sums) {
  const StateTag d;
  StateVector key_sum[kStateVectors];
  StateVector query_sum[kStateVectors];
  for (size_t j = 0; j < kStateVectors; ++j) key_sum[j] = query_sum[j] = hn::Zero(d);
  TakeToken(key_dim, source, target, token, count,
            [&](size_t i, size_t j, StateVector state) HWY_ATTR {
              key_sum[j] = hn::MulAdd(hn::Set(d, key[i]), state, key_sum[j]);
              query_sum[j] = hn::MulAdd(hn::Set(d, query[i]), state, query_sum[j]);
            });
  for (size_t j = 0; j < kStateVectors; ++j) {
    key_sums[j] = key_sum[j];
    query_sums[j] = query_sum[j];
  }
}

// Computes the delta and the output of a row from the products of the state before it.
HWY_INLINE void FinishRow(const StateToken& token, float beta, float key_product, size_t count,
                          const StateVector* HWY_RESTRICT key_sums,
                          const StateVector* HWY_RESTRICT query_sums, float* output) {
  const StateTag d;
  StateVector delta[kStateVectors];
  StateVector result[kStateVectors];
  LoadColumns(token.value, count, delta);
  const StateVector decay = hn::Set(d, token.decay);
  for (size_t j = 0; j < kStateVectors; ++j) {
    delta[j] = hn::Mul(hn::Set(d, beta), hn::NegMulAdd(decay, key_sums[j], delta[j]));
    result[j] = hn::MulAdd(hn::Set(d, key_product), delta[j], hn::Mul(decay, query_sums[j]));
  }
  StoreColumns(delta, count, token.value);
  StoreColumns(result, count, output);
}

// Computes `count` columns from `column` on, whose state is `state`.
void RunColumns(const HeadState& head, float* state, size_t column, size_t count,
                const StateUpdates& kept, const StateUpdates& rows, const DeltaReads& reads,
                size_t num_taken) {
  // The state after tokens that it does not take up.
  HWY_ALIGN float later[kMaxStateKeyDim * kStateColumns];
  if (head.is_empty) std::fill_n(state, head.key_dim * kStateColumns, 0.0f);
  const size_t num_tokens = kept.num_rows + rows.num_rows;
  const float* source = state;
  // Before the first token there is one that changes nothing.
  float no_delta[kStateColumns] = {};
  StateToken last = {kept.num_rows > 0 ? kept.keys : rows.keys, no_delta, 1.0f};
  // Each pass takes up the token before and computes a row. The last token is taken up only if the
  // state shall have it.
  for (size_t i = 0; i < std::max(num_tokens, num_taken + 1); ++i) {
    float* const target = i <= num_taken ? state : later;
    if (i < kept.num_rows || i >= num_tokens) {
      if (i > 0) {
        TakeToken(head.key_dim, source, target, last, count);
        source = target;
      }
      if (i < num_tokens) last = TokenOf(kept, i, column);
      continue;
    }
    const size_t row = i - kept.num_rows;
    const StateToken token = TokenOf(rows, row, column);
    StateVector key_sums[kStateVectors];
    StateVector query_sums[kStateVectors];
    TakeAndRead(head.key_dim, source, target, last, count, token.key,
                reads.queries + row * reads.query_stride, key_sums, query_sums);
    source = target;
    FinishRow(token, reads.betas[row * reads.gate_stride],
              reads.key_products[row * reads.gate_stride], count, key_sums, query_sums,
              reads.outputs + row * reads.output_stride + column);
    last = token;
  }
}

void DeltaRule(const HeadState& head, const StateUpdates& kept, const StateUpdates& rows,
               const DeltaReads& reads, size_t num_taken) {
  float* state = head.state;
  for (size_t column = 0; column < head.value_dim; column += kStateColumns) {
    const size_t count = std::min(kStateColumns, head.value_dim - column);
    RunColumns(head, state, column, count, kept, rows, reads, num_taken);
    state += head.key_dim * kStateColumns;
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(DeltaRule);

void DeltaRule(const HeadState& head, const StateUpdates& kept, const StateUpdates& rows,
               const DeltaReads& reads, size_t num_taken) {
  HWY_DYNAMIC_DISPATCH(DeltaRule)(head, kept, rows, reads, num_taken);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
