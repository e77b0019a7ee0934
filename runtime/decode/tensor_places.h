#pragma once

#include <cstddef>
#include <vector>

#include "decode/projection.h"
#include "model/tensor_table.h"
#include "xnn/linear.h"

namespace cria {

// Where a tensor is loaded, the shape that it must have, and for a product its buffers.
struct TensorPlace {
  TensorRole role = {};
  const float** vector = nullptr;  // For a norm or bias, and a matrix that is used as it is.
  Projection* product = nullptr;   // For a matrix that rows are multiplied by.
  size_t outputs = 0;              // 1 for a norm or bias.
  size_t inputs = 0;
  // The rest is for products alone.
  const float* input = nullptr;
  size_t input_stride = 0;
  xnn::QuantizedRows quantized = {};
  float* output = nullptr;
};

// The places of all tensors that a decoder uses: each part of it adds those of its own.
class TensorPlaces {
 public:
  // The places that are added from now on belong to this layer, kNoLayer first.
  void BeginLayer(int layer) { layer_ = layer; }
  void Add(const TensorPlace& place);
  // A norm or bias of `size` numbers.
  void AddVector(TensorRole role, const float*& vector, size_t size);

  // All places of a tensor: none if the decoder does not use it, and several if several parts do.
  std::vector<TensorPlace> Find(TensorRole role, int layer) const;

 private:
  struct Entry {
    int layer;
    TensorPlace place;
  };

  int layer_ = kNoLayer;
  std::vector<Entry> entries_;  // In the order of the layers.
};

}  // namespace cria
