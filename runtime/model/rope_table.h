#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/config.h"

namespace cria {

// The angle in radians by which position p + 1 rotates each pair of a head more than position p,
// [d / 2] with d = rotary_channels(), in layers of a kind, with its scaling: rope_theta^(-2i / d)
// (Su et al. 2021), and
// - kLinear: divided by the factor (Chen et al. 2023);
// - kLlama3: divided only for wavelengths beyond the trained context, with a smooth transition
//   (Llama 3.1);
// - kDynamic: with rope_theta multiplied by (factor * c / m - (factor - 1))^(d / (d - 2)), where c
//   is `context_tokens` and m max_position_embeddings, if c is more than m (Peng et al. 2023,
//   "dynamic NTK"). transformers recomputes this as a text grows, so that keys of earlier tokens
//   were rotated with other frequencies than later ones. Here, the context has a fixed length and
//   one set of frequencies: those of transformers for a text that fills the context;
// - kYarn: divided for pairs that rotate less than beta_slow times in the trained context,
//   unchanged for pairs that rotate more than beta_fast times, and blended in between (Peng et al.
//   2023);
// - kLongrope: each divided by its own factor, from one of two lists (Ding et al. 2024). The length
//   of the context decides between them, as it decides the frequencies of kDynamic.
std::vector<double> RopeInverseFrequencies(const ModelConfig& config, const LayerKind& kind,
                                           size_t context_tokens);

// Fills `cosines` and `sines`, each [inverse_frequencies.size()], for a number of positions, which
// may be negative.
void FillRopeTurn(std::span<const double> inverse_frequencies, double positions, float* cosines,
                  float* sines);
// Fills `cosines` and `sines`, each [positions][inverse_frequencies.size()].
void FillRopeTable(std::span<const double> inverse_frequencies, size_t positions, float* cosines,
                   float* sines);

// The kinds of layers that need a rope table of their own, in the order of layer_kinds: each has
// another rope_theta, rope_scaling or size of heads than those before it. Layers without rope need
// none.
std::vector<LayerKind> KindsWithRopeTables(const ModelConfig& config);
// The index in `tables`, the result of KindsWithRopeTables, of the table for layers of this kind.
size_t RopeTableOf(std::span<const LayerKind> tables, const LayerKind& kind);

}  // namespace cria
