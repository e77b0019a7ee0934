#pragma once

#include <cstddef>
#include <span>

#include "c_api/handles.h"

namespace cria::c_api {

// Where a caller wants logits: in `capacity` values, or nowhere if `logits` is null.
struct LogitBuffer {
  float* logits;
  size_t capacity;
  size_t* num_logits;

  // Sets the number of logits. Returns whether any are wanted; fails if the buffer is too small.
  Result<bool> Prepare(const LoadedModel& model) const;
  void Fill(std::span<const float> values) const;
};

}  // namespace cria::c_api
