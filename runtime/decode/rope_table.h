#pragma once

#include <cstddef>
#include <vector>

#include "model/config.h"

namespace cria {

// The angle by which each pair of a head turns per position, [head_dim / 2], with the
// configuration's scaling applied: rope_theta^(-2i / head_dim) (Su et al. 2021), and
// - kLinear: divided by the factor (Chen et al. 2023);
// - kLlama3: divided only for wavelengths beyond the trained context, with a smooth transition
//   (Llama 3.1);
// - kDynamic: with rope_theta multiplied by (factor * c / m - (factor - 1))^(head_dim / (head_dim -
//   2)), where c is `context_tokens` and m max_position_embeddings, if c is more than m (Peng et
//   al. 2023, "dynamic NTK"). transformers follows the length of each text so far, with keys of
//   earlier tokens turned by other frequencies than later ones; here the context has one length
//   from the start, and one set of frequencies: those of transformers for a text that fills it;
// - kYarn: divided for pairs that turn less than beta_slow times in the trained context, kept for
//   those that turn more than beta_fast times, and blended between them (Peng et al. 2023).
std::vector<double> RopeInverseFrequencies(const ModelConfig& config, size_t context_tokens);

// Fills `cosines` and `sines`, each [positions][head_dim / 2], for a context of that many
// positions.
void FillRopeTable(const ModelConfig& config, size_t positions, float* cosines, float* sines);

}  // namespace cria
