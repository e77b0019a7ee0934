#pragma once

#include <cstdint>

#include "reference/reference_model.h"

namespace cria::support {

// Writes the same function so that it is hard to quantize, as trained models of a billion
// parameters are: some channels of each norm's gain become 40 times as large, some rows of up_proj
// 50 times, and two rows of each head of v_proj 30 times, biases too; the columns that read them
// are divided. The gain before a head that is the embedding table stays.
void PlantChannels(reference::ReferenceModel& model, uint64_t seed);

// Makes two channels of each token's embedding 100 times as large, which are others for each token,
// of models with a head of their own. No factors of channels even them out. It is another function.
void PlantSparseEmbeddings(reference::ReferenceModel& model, uint64_t seed);

// Makes the slowest pair of every head, in rope's half-split order, have no queries, and a bias of
// this size in the keys, of models with qkv_bias. Every bias computes the same.
void PlantKeyBiases(reference::ReferenceModel& model, float bias);

}  // namespace cria::support
