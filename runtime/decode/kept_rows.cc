#include "decode/kept_rows.h"

#include <algorithm>

namespace cria {

void BeginKeptRows(const KeptRows& kept, const StateRun& run, size_t begin, size_t end) {
  if (run.state_tokens != 0) return;
  for (size_t i = 0; i < kept.num_earlier; ++i) {
    std::fill(kept.rows + i * kept.channels + begin, kept.rows + i * kept.channels + end, 0.0f);
  }
}

void MoveKeptRows(const KeptRows& kept, const StateRun& run, const float* new_rows, size_t stride,
                  size_t begin, size_t end) {
  // Row i is that of position state_tokens - num_earlier + i: what later tokens add follows the
  // state like any other row.
  const size_t num_old = kept.num_earlier + run.num_kept_rows;
  const size_t distance = run.new_state_tokens - run.state_tokens;
  for (size_t i = 0; i < kept.num_earlier + run.num_new_kept_rows(); ++i) {
    const size_t source = i + distance;
    if (source < num_old && distance == 0) continue;
    const float* const row = source < num_old ? kept.rows + source * kept.channels
                                              : new_rows + (source - num_old) * stride;
    std::copy(row + begin, row + end, kept.rows + i * kept.channels + begin);
  }
}

}  // namespace cria
