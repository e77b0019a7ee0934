#pragma once

#include <optional>
#include <span>

#include "model/config.h"

namespace cria {

// The parameters of Llama 3's rotary scaling that give these factors, which each frequency of a
// head, theta^(-2i / head_dim), is divided by; kNone where all are 1. Nothing where no parameters
// give them. (As in transformers' _compute_llama3_parameters; files that hold the factors alone
// are GGUF's.) `factors` has head_dim / 2 elements.
//
// What the factors do not tell is taken as Llama 3's: low_freq_factor is 1, high_freq_factor is 4
// where at most one frequency is blended, and 8,192 positions are the original ones where none is.
std::optional<RopeScaling> FindLlama3Scaling(std::span<const float> factors, float rope_theta);

}  // namespace cria
