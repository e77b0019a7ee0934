#pragma once

#include <cstddef>

#include "decode/recurrent_states.h"

namespace cria {

// Rows of the last tokens of a sequence in the memory of a recurrent layer: those of the
// `num_earlier` tokens before the end of the state, which are zeros before the first token, and
// behind them those of later tokens.
struct KeptRows {
  float* rows = nullptr;
  size_t channels = 0;
  size_t num_earlier = 0;

  // The rows before those of a run's tokens, [num_earlier][channels].
  const float* EarlierThan(const StateRun& run) const {
    return rows + run.num_kept_rows * channels;
  }
};

// Makes channels [begin, end) ready before a run is computed.
void BeginKeptRows(const KeptRows& kept, const StateRun& run, size_t begin, size_t end);

// Leaves channels [begin, end) of the rows that later runs need. `new_rows` are those of the run's
// tokens; each begins `stride` after the one before.
void MoveKeptRows(const KeptRows& kept, const StateRun& run, const float* new_rows, size_t stride,
                  size_t begin, size_t end);

}  // namespace cria
