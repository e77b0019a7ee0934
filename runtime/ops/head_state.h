#pragma once

#include <cstddef>

namespace cria::ops {

// Columns of a head's state that are stored together.
inline constexpr size_t kStateColumns = 16;
inline constexpr size_t kMaxStateKeyDim = 256;

// The state of one head of a recurrent layer, to which each token adds an outer product: S,
// [key_dim, value_dim].
struct HeadState {
  size_t key_dim = 0;  // At most kMaxStateKeyDim.
  size_t value_dim = 0;
  // [value_dim / kStateColumns, rounded up][key_dim][kStateColumns]; columns behind value_dim are
  // zeros.
  float* state = nullptr;
  bool is_empty = false;  // The state is zero, whatever the memory has.
};

// Floats of a head's state.
constexpr size_t HeadStateSize(size_t key_dim, size_t value_dim) {
  return (value_dim + kStateColumns - 1) / kStateColumns * kStateColumns * key_dim;
}

// What each token does to the state: S = decay * S + key value^T. Row r begins at r times the
// stride.
struct StateUpdates {
  const float* keys = nullptr;    // [key_dim]
  float* values = nullptr;        // [value_dim]
  const float* decays = nullptr;  // One number.
  size_t stride = 0;
  size_t num_rows = 0;
};

}  // namespace cria::ops
