#pragma once

#include <span>

#include "model/config.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Whether the KV cache subtracts offsets from keys (ops::KeyOffsets): int8 keys with biases, unless
// something behind the bias depends on more than the differences of scores. Some models (Qwen2)
// have biases of keys that are many times as large as what differs between keys, mostly in pairs
// that rope turns slowly. With one scale for all channels of a key, such a bias would leave few
// steps for the others.
bool HasKeyOffsets(const ModelConfig& config, KvType type);

// Fills ops::KeyOffsets::middles and slopes, [heads][head_dim], with the line that has the least
// squared distance, over the positions of the first page, from the bias as rope turns it. `bias`
// has the same shape. A pair of channels, which rope turns by its inverse frequency from position
// to position, has one of `inverse_frequencies`, [pairs]. The channels behind the pairs are not
// turned.
void FillKeyOffsets(std::span<const double> inverse_frequencies, size_t head_dim,
                    std::span<const float> bias, std::span<float> middles, std::span<float> slopes);

}  // namespace cria
