#pragma once

#include <cstddef>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"
#include "model/config.h"

namespace cria {

// What linear attention takes besides its input and its products.
struct LinearAttentionWeights {
  std::vector<float> taps;  // [linear_conv_kernel_dim][linear_conv_channels]
  std::vector<float> dt_bias;
  std::vector<float> decay_rates;
  std::vector<float> norm;  // [linear_value_head_dim]
};

// What its out_proj reads, [rows, linear_value_channels], from the products with in_proj, [rows,
// linear_conv_channels + linear_value_channels], and those with ba_proj, [rows, 2 * value heads].
// Every window of `window_tokens` rows is a text of its own. Like the other steps, this gives the
// same on every processor.
void RunLinearAttention(const ThreadPool& threads, const ModelConfig& config,
                        const LinearAttentionWeights& weights, size_t window_tokens,
                        ConstMatrixView projected, ConstMatrixView gates, MatrixView output);

}  // namespace cria
