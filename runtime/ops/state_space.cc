#include "ops/state_space.h"

#include <algorithm>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/state_space.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/head_state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Sums that are added to by turns, so that an addition need not wait for the one before.
inline constexpr size_t kReadSums = 2;

// TakeToken, and adds the products of `target` with a query to `output`.
HWY_INLINE void TakeAndReadSpace(size_t key_dim, const float* source, float* target,
                                 const StateToken& token, size_t count, const float* query,
                                 float* output) {
  const StateTag d;
  StateVector sums[kReadSums][kStateVectors];
  LoadColumns(output, count, sums[0]);
  for (size_t j = 0; j < kStateVectors; ++j) sums[1][j] = hn::Zero(d);
  TakeToken(key_dim, source, target, token, count,
            [&](size_t i, size_t j, StateVector state) HWY_ATTR {
              StateVector& sum = sums[i % kReadSums][j];
              sum = hn::MulAdd(hn::Set(d, query[i]), state, sum);
            });
  for (size_t j = 0; j < kStateVectors; ++j) sums[0][j] = hn::Add(sums[0][j], sums[1][j]);
  StoreColumns(sums[0], count, output);
}

// Computes `count` columns from `column` on, whose state is `state`.
void RunSpaceColumns(const HeadState& head, float* state, size_t column, size_t count,
                     const StateUpdates& kept, const StateUpdates& rows,
                     const StateSpaceReads& reads, size_t num_taken) {
  // The state after tokens that it does not take up.
  HWY_ALIGN float later[kMaxStateKeyDim * kStateColumns];
  if (head.is_empty) std::fill_n(state, head.key_dim * kStateColumns, 0.0f);
  const float* source = state;
  // Without rows, nothing is read behind the state.
  const size_t num_tokens = rows.num_rows == 0 ? num_taken : kept.num_rows + rows.num_rows;
  for (size_t i = 0; i < num_tokens; ++i) {
    float* const target = i < num_taken ? state : later;
    if (i < kept.num_rows) {
      TakeToken(head.key_dim, source, target, TokenOf(kept, i, column), count);
    } else {
      const size_t row = i - kept.num_rows;
      TakeAndReadSpace(head.key_dim, source, target, TokenOf(rows, row, column), count,
                       reads.queries + row * reads.query_stride,
                       reads.outputs + row * reads.output_stride + column);
    }
    source = target;
  }
}

void StateSpace(const HeadState& head, const StateUpdates& kept, const StateUpdates& rows,
                const StateSpaceReads& reads, size_t num_taken) {
  float* state = head.state;
  for (size_t column = 0; column < head.value_dim; column += kStateColumns) {
    const size_t count = std::min(kStateColumns, head.value_dim - column);
    RunSpaceColumns(head, state, column, count, kept, rows, reads, num_taken);
    state += head.key_dim * kStateColumns;
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(StateSpace);

void StateSpace(const HeadState& head, const StateUpdates& kept, const StateUpdates& rows,
                const StateSpaceReads& reads, size_t num_taken) {
  HWY_DYNAMIC_DISPATCH(StateSpace)(head, kept, rows, reads, num_taken);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
