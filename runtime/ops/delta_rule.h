#pragma once

#include <cstddef>

#include "ops/head_state.h"

namespace cria::ops {

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

// The gated delta rule (Yang, Kautz and Hatamizadeh 2024) for one head of one sequence: the state
// is S, [key_dim, value_dim], and for each row of `rows`
//
//   S = decay * S;  delta = beta * (value - S^T key);  S += key delta^T;  output = S^T query.
//
// Before that, the values of `rows` are those of the text; after it, they are the deltas. The rows
// of `kept` are tokens between the state and these rows, whose deltas are known. The state takes up
// the first `num_taken` of all rows and is left there. Every result has the same bits for any
// division of a text into states, kept rows and rows.
void DeltaRule(const HeadState& head, const StateUpdates& kept, const StateUpdates& rows,
               const DeltaReads& reads, size_t num_taken);

}  // namespace cria::ops
