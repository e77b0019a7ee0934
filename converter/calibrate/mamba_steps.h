#pragma once

#include <cstddef>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"
#include "model/config.h"

namespace cria {

// What Mamba-2 takes besides its input and its products.
struct MambaWeights {
  std::vector<float> in_bias;    // [mamba_in_channels + heads], or empty.
  std::vector<float> taps;       // [mamba_d_conv][mamba_conv_channels]
  std::vector<float> conv_bias;  // [mamba_conv_channels], or empty.
  std::vector<float> dt_bias;
  std::vector<float> decay_rates;
  std::vector<float> direct;
  std::vector<float> norm;  // [mamba_channels]
};

// What its out_proj reads, [rows, mamba_channels], from the products with in_proj, [rows,
// mamba_in_channels], and those with dt_proj, [rows, heads]. Every window of `window_tokens` rows
// is a text of its own. Like the other steps, this gives the same on every processor.
void RunMamba(const ThreadPool& threads, const ModelConfig& config, const MambaWeights& weights,
              size_t window_tokens, ConstMatrixView projected, ConstMatrixView steps,
              MatrixView output);

}  // namespace cria
