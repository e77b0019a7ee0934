#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reference/reference_model.h"

namespace cria::reference {

// The angles, in radians per position, by which the pairs of a head of a layer are turned:
// [turned_channels / 2]. kDynamic and kLongrope take those of a text of `context` tokens.
std::vector<double> RopeFrequencies(const ReferenceConfig& config, size_t context = 0,
                                    size_t layer = 0);

// Turns the pairs of each head by `position` times the frequencies of its layer, in place.
// `heads` is [heads][head_dim].
void RotateHeads(const ReferenceConfig& config, const ReferenceAttention& attention,
                 std::span<const double> frequencies, size_t position, std::vector<double>& heads);

}  // namespace cria::reference
