#pragma once

#include <cstddef>

#include "ops/kv_cache_view.h"

namespace cria::ops {

// Rows of each head's keys and values, counted over all pages.
struct KvRowMove {
  size_t source_row = 0;
  size_t target_row = 0;  // At most source_row, unless the rows do not overlap.
  size_t num_rows = 0;
  // The first row's position after the move. The rows are in one page before and after it.
  size_t position = 0;
  size_t distance = 0;  // The rows' new positions are less by this.
  // The shift of the sequence before and after the move, if it is that of these rows.
  KeyShift old_shift = {};
  KeyShift new_shift = {};
};

// Copies the keys and values of one layer's rows to other rows, or to themselves. `cosines` and
// `sines` are rope's turn, [half of the channels that are rotated], by which the keys are turned
// back: that of the distance, if the shifts are the same. Null: they are not turned. head_dim is at
// most kMaxHeadDim.
//
// Values do not change. A key that is turned is rounded again to the cache's type; for int8, each
// rounding adds an error of up to half a step of its new scale.
void MoveRows(const KvCacheView& cache, const KvRowMove& move, const float* cosines,
              const float* sines);

}  // namespace cria::ops
