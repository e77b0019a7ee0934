#pragma once

#include <cstddef>
#include <cstdint>

namespace cria {

// How near a model's predictions of the next token are to the checkpoint's.
struct KeptPredictions {
  size_t num_tokens = 0;    // Behind how many tokens they were compared.
  size_t num_same = 0;      // How often the most likely token is the same.
  double divergence = 0.0;  // Kullback-Leibler, from the checkpoint's, in nats per token.
};

// What calibrating did.
struct CalibrationReport {
  size_t num_tokens = 0;      // 0: the model was not calibrated.
  size_t num_matrices = 0;    // In the layers.
  size_t num_calibrated = 0;  // The others are rounded, because that is better for held-back text.
  // The geometric mean, over the matrices, of the squared error of their outputs on held-back text
  // in relation to that of rounding.
  double held_back_ratio = 1.0;
  // Whether there are fewer tokens than twice the inputs of the widest matrix.
  bool has_few_tokens = false;
  size_t num_resumed_layers = 0;  // Which an earlier run had done.
  size_t num_experts = 0;         // In all layers together.
  // Experts whose matrices are rounded because too few tokens reach them.
  size_t num_rounded_experts = 0;
  KeptPredictions predictions;  // For tokens that were held back.
};

// What the layers so far gave to the report.
struct CalibrationProgress {
  uint64_t num_matrices = 0;
  uint64_t num_calibrated = 0;
  uint64_t num_experts = 0;
  uint64_t num_rounded_experts = 0;
  double log_ratios = 0.0;  // The sum of the logarithms of the ratios of held_back_ratio.
};

}  // namespace cria
