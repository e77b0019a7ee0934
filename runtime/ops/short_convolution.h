#pragma once

#include <cstddef>

namespace cria::ops {

// The taps of a causal convolution over positions, each channel by itself.
struct ShortConvolutionTaps {
  size_t num_taps = 0;
  size_t channels = 0;
  const float* weights = nullptr;  // [num_taps][channels]; the last tap is the current position's.
  const float* bias = nullptr;     // [channels], or null.
};

// Consecutive positions of one sequence. Row r begins at r times the stride.
struct ConvolutionRows {
  float* input = nullptr;
  size_t input_stride = 0;
  // If it is not null, the input is first multiplied by these, with the same stride, in place.
  const float* input_gates = nullptr;
  float* output = nullptr;  // Must not overlap the input.
  size_t output_stride = 0;
  bool multiplies_output = false;  // The output is multiplied by the result, not replaced by it.
  size_t num_rows = 0;
  const float* earlier = nullptr;  // [num_taps - 1][channels]: the inputs of the positions before.
};

// For channels [begin, end) of all rows: taps * input + bias.
void Convolution(const ShortConvolutionTaps& taps, const ConvolutionRows& rows, size_t begin,
                 size_t end);

// The inputs of consecutive positions of one sequence.
struct ShortConvolutionRows {
  // [num_rows][3 * channels]: of each row the gate of the input, the gate of the output and the
  // input. Afterwards, the first part is the gated input and the second one is the output.
  float* rows = nullptr;
  size_t num_rows = 0;
  // [num_taps - 1][channels]: the gated inputs of the positions before.
  const float* earlier = nullptr;
};

// For channels [begin, end) of all rows: out = output gate * (taps * (input gate * input) + bias),
// the gated short convolution of LFM2 (Liquid AI 2025).
inline void ShortConvolution(const ShortConvolutionTaps& taps, const ShortConvolutionRows& rows,
                             size_t begin, size_t end) {
  const size_t stride = 3 * taps.channels;
  Convolution(taps,
              {.input = rows.rows,
               .input_stride = stride,
               .input_gates = rows.rows + 2 * taps.channels,
               .output = rows.rows + taps.channels,
               .output_stride = stride,
               .multiplies_output = true,
               .num_rows = rows.num_rows,
               .earlier = rows.earlier},
              begin, end);
}

}  // namespace cria::ops
