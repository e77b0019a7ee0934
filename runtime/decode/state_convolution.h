#pragma once

#include <cstddef>

#include "decode/batch_placement.h"
#include "decode/kept_rows.h"
#include "decode/state_cache.h"
#include "decode/workers.h"
#include "ops/short_convolution.h"

namespace cria {

// The causal convolution with SiLU behind it that rows go through before a recurrent layer's state
// sees them. What it read of the last tokens is a part of what the layer keeps.
struct StateConvolution {
  ops::ShortConvolutionTaps taps;
  const StateCache::Layer& states;
  size_t kept_offset;  // Where the inputs of earlier tokens begin in a place.
  // Rows of the batch. Row r begins at r times the stride.
  float* input;
  size_t input_stride;
  float* output;
  size_t output_stride;

  KeptRows KeptInputs(size_t place) const {
    return {.rows = states.State(place) + kept_offset,
            .channels = taps.channels,
            .num_earlier = taps.num_taps - 1};
  }
  // Computes the first `rows` rows, and leaves what later runs need.
  void Run(const BatchPlacement& placement, size_t rows, const Workers& workers) const;

 private:
  // Channels [begin, end) of a run's rows, the first of which is row `first`.
  void RunChannels(const StateRun& run, size_t first, size_t begin, size_t end) const;
};

}  // namespace cria
