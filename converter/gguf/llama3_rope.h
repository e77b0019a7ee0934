#pragma once

#include <optional>
#include <span>

#include "model/config.h"

namespace cria {

// Finds the parameters of Llama 3's rotary scaling that produce `factors`, the divisors of each
// frequency of a head, theta^(-2i / head_dim); kNone if all are 1, nothing if no parameters produce
// them. GGUF files have the factors but not the parameters. (Formula: transformers'
// _compute_llama3_parameters.) `factors` has head_dim / 2 elements.
//
// Parameters that the factors leave open get Llama 3's values: low_freq_factor is 1;
// high_freq_factor is 4 if at most one frequency is blended; the original context is 8,192
// positions if none is.
std::optional<RopeScaling> FindLlama3Scaling(std::span<const float> factors, float rope_theta);

}  // namespace cria
