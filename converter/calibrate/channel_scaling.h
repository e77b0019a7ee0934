#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "converter/write/file_plan.h"
#include "cria/error.h"

namespace cria {

// What writes the inputs of a matrix. Dividing its channels, and multiplying the matrix's columns,
// computes the same.
struct InputWriter {
  PlannedTensor* tensor;          // A norm, or a matrix whose rows are the channels.
  size_t part = 0;                // Of the tensor, as in MapTensors.
  PlannedTensor* bias = nullptr;  // The matrix's, or null.
  // Column j of the matrix reads channel j / head_dim / heads_per_channel_head * head_dim +
  // j % head_dim.
  size_t head_dim = 1;
  size_t heads_per_channel_head = 1;

  size_t ChannelOf(size_t column) const {
    return column / head_dim / heads_per_channel_head * head_dim + column % head_dim;
  }
};

// What reads those inputs: the matrices that are quantized, and what stays in f32, whose columns
// only follow.
struct InputReaders {
  std::vector<PlannedTensor*> quantized;
  std::vector<PlannedTensor*> in_f32 = {};
};

// Scales the channels between `writer` and its readers so that products of these lose less when
// weights and inputs are quantized, if any of some exponents does: s = rms of the input ^ a / rms
// of the column ^ b (a = b = 1/2: Xiao et al. 2022, "SmoothQuant"; b = 0: Lin et al. 2023, "AWQ").
// `input_rms` [input channels of the readers] are the sizes of their inputs. Changes the factors of
// the tensors' parts, and returns whether it did.
Result<bool> ScaleChannels(const InputWriter& writer, std::span<const float> input_rms,
                           const InputReaders& readers);

}  // namespace cria
