#pragma once

#include <cstddef>
#include <vector>

#include "model/config.h"

namespace cria {

// The angle by which each pair of a head turns per position, [head_dim / 2], with the
// configuration's scaling applied: rope_theta^(-2i / head_dim) (Su et al. 2021), divided by the
// factor for kLinear (Chen et al. 2023), and for kLlama3 divided only for wavelengths beyond the
// trained context, with a smooth transition (Llama 3.1).
std::vector<double> RopeInverseFrequencies(const ModelConfig& config);

// Fills `cosines` and `sines`, each [positions][head_dim / 2].
void FillRopeTable(const ModelConfig& config, size_t positions, float* cosines, float* sines);

}  // namespace cria
