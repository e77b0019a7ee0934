#pragma once

#include <cstddef>

#include "ops/head_state.h"

namespace cria::ops {

// What the outputs of rows are computed of. Row r begins at r times the stride.
struct StateSpaceReads {
  const float* queries = nullptr;  // [key_dim]
  size_t query_stride = 0;
  float* outputs = nullptr;  // [value_dim], to which what is read is added.
  size_t output_stride = 0;
};

// The recurrence of Mamba-2 (Dao and Gu 2024) for one head of one sequence: for each row of `rows`
//
//   S = decay * S + key value^T;  output += S^T query,
//
// where keys and queries are the paper's B and C, and values are inputs times their time steps. The
// rows of `kept` are tokens between the state and these rows. The state takes up the first
// `num_taken` of all rows and is left there. Every result has the same bits for any division of a
// text into states, kept rows and rows.
void StateSpace(const HeadState& head, const StateUpdates& kept, const StateUpdates& rows,
                const StateSpaceReads& reads, size_t num_taken);

}  // namespace cria::ops
