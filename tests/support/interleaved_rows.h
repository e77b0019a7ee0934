#pragma once

#include <cstddef>
#include <vector>

#include "reference/reference_model.h"

namespace cria::support {

// Reorders a tensor of queries or keys, whose heads have rows in half-split order (row i is rotated
// with row i + head_dim / 2), for formats that store the two rows next to each other.
inline std::vector<float> InterleaveRows(const reference::ReferenceTensor& tensor,
                                         size_t head_dim) {
  const size_t rows = tensor.shape[0];
  const size_t row_size = tensor.values.size() / rows;
  std::vector<float> values;
  for (size_t head = 0; head < rows / head_dim; ++head) {
    for (size_t pair = 0; pair < head_dim / 2; ++pair) {
      for (const size_t row : {pair, pair + head_dim / 2}) {
        const float* begin = tensor.values.data() + (head * head_dim + row) * row_size;
        values.insert(values.end(), begin, begin + row_size);
      }
    }
  }
  return values;
}

}  // namespace cria::support
