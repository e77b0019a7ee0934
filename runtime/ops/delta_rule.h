#pragma once

#include <cstddef>

namespace cria::ops {

// Columns of a head's state that are stored together.
inline constexpr size_t kDeltaColumns = 16;
inline constexpr size_t kMaxDeltaKeyDim = 256;

// What each token adds to the state of one head. Row r begins at r times the stride.
struct DeltaUpdates {
  const float* keys = nullptr;  // [key_dim]
  // [value_dim]. For rows that are computed, the values before and the updates after that.
  float* deltas = nullptr;
  const float* decays = nullptr;  // One number, which the state is multiplied by before.
  size_t stride = 0;
  size_t num_rows = 0;
};

// What the outputs of rows are computed of. Row r begins at r times the stride.
struct DeltaReads {
  const float* queries = nullptr;  // [key_dim]
  size_t query_stride = 0;
  const float* betas = nullptr;         // One number.
  const float* key_products = nullptr;  // One number: the row's query times its key.
  size_t gate_stride = 0;
  float* outputs = nullptr;  // [value_dim]
  size_t output_stride = 0;
};

struct DeltaRuleHead {
  size_t key_dim = 0;  // At most kMaxDeltaKeyDim.
  size_t value_dim = 0;
  // [value_dim / kDeltaColumns, rounded up][key_dim][kDeltaColumns]; columns behind value_dim are
  // zeros.
  float* state = nullptr;
  bool is_empty = false;  // The state is zero, whatever the memory has.
};

// Floats of a head's state.
constexpr size_t DeltaStateSize(size_t key_dim, size_t value_dim) {
  return (value_dim + kDeltaColumns - 1) / kDeltaColumns * kDeltaColumns * key_dim;
}

// The gated delta rule (Yang, Kautz and Hatamizadeh 2024) for one head of one sequence: the state
// is S, [key_dim, value_dim], and for each row of `rows`
//
//   S = decay * S;  delta = beta * (value - S^T key);  S += key delta^T;  output = S^T query.
//
// The rows of `kept` are tokens between the state and these rows, whose deltas are known. The state
// takes up the first `num_taken` of all rows and is left there. Every result has the same bits for
// any division of a text into states, kept rows and rows.
void DeltaRule(const DeltaRuleHead& head, const DeltaUpdates& kept, const DeltaUpdates& rows,
               const DeltaReads& reads, size_t num_taken);

}  // namespace cria::ops
