#pragma once

#include <cstddef>
#include <vector>

#include "reference/reference_model.h"

namespace cria::support {

// The values of a tensor of queries or keys, whose heads have rows in half-split order (i turns
// with i + head_dim / 2), in the order of formats that keep the two side by side.
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
