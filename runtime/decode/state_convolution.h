#pragma once

#include <cstddef>
#include <span>

#include "decode/batch_placement.h"
#include "decode/kept_rows.h"
#include "decode/state_cache.h"
#include "decode/workers.h"
#include "ops/short_convolution.h"

namespace cria {

// The causal convolution with SiLU behind it that rows go through before a recurrent layer's state
// matrices see them. What it read of the last tokens is a part of what the layer keeps: in a place
// are the matrices, then the convolution's inputs of earlier tokens, its inputs of later tokens,
// and the updates that later tokens make to the matrices.
struct StateConvolution {
  ops::ShortConvolutionTaps taps;
  const StateCache::Layer& states;
  size_t matrix_elements;  // Floats of the state's matrices, which are first in a place.
  size_t update_channels;  // The elements of a token's update of the matrices.
  // Rows of the batch. Row r begins at r times the stride.
  float* input;
  size_t input_stride;
  float* output;
  size_t output_stride;

  KeptRows KeptInputs(size_t place) const {
    return {.rows = states.State(place) + matrix_elements,
            .channels = taps.channels,
            .num_earlier = taps.num_taps - 1};
  }
  KeptRows KeptUpdates(size_t place) const;
  // Computes the first `rows` rows, and leaves the inputs that later runs need.
  void Run(const BatchPlacement& placement, size_t rows, const Workers& workers) const;
  // Leaves the updates that later runs need. `updates` is the first row's part of the output.
  void KeepUpdates(const BatchPlacement& placement, const float* updates) const;
  // Copies the state in a place into the beginning of `scratch`, with the inputs of the convolution
  // as they are after the first `num_rows` later tokens. The matrices are left as they are.
  std::span<float> CopyState(size_t place, size_t num_rows, std::span<float> scratch) const;

 private:
  // Channels [begin, end) of a run's rows, the first of which is row `first`.
  void RunChannels(const StateRun& run, size_t first, size_t begin, size_t end) const;
};

}  // namespace cria
