#pragma once

// What a model file has of a tensor, for tests that compare the weights of two files.

#include <cstddef>
#include <cstring>
#include <vector>

#include "model/model_file.h"
#include "support/unwrap.h"
#include "weights/block_numbers.h"

namespace cria {

inline std::vector<std::byte> ReadBytes(const ModelFile& file, const FileRange& range) {
  std::vector<std::byte> bytes(range.bytes);
  Unwrap(file.Read(range, bytes));
  return bytes;
}

// The rows of a tensor in f32 or in blocks, one piece behind another, as f32.
inline std::vector<float> WeightsOf(const ModelFile& file, TensorRole role, int layer) {
  std::vector<float> weights;
  for (const StoredTensor& piece : file.pieces(role, layer)) {
    const std::vector<std::byte> data = ReadBytes(file, piece.data);
    std::vector<float> values(piece.spec.output_channels * piece.spec.input_channels);
    if (piece.layout.block_format() == nullptr) {
      std::memcpy(values.data(), data.data(), data.size());
    } else {
      DequantizeBlocks(*piece.layout.block_format(), data.data(), values);
      for (float& value : values) value *= piece.layout.factor;
    }
    weights.insert(weights.end(), values.begin(), values.end());
  }
  return weights;
}

}  // namespace cria
