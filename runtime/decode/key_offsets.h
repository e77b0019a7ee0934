#pragma once

#include <span>
#include <vector>

#include "model/config.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Whether the KV cache subtracts a constant from keys (KvCacheView::key_offsets): int8 keys with
// biases, unless something behind the bias depends on more than the differences of scores. Some
// models (Qwen2) have biases of keys that are many times as large as what differs between keys,
// mostly in pairs that rope hardly turns within the context. With one scale for all channels of a
// key, such a bias would leave few steps for the others.
bool HasKeyOffsets(const ModelConfig& config, KvType type);

// The mean over all positions of a rope table: a pair (a, b) becomes (a * cosine - b * sine,
// a * sine + b * cosine). For pairs that turn often, it is about 0.
struct MeanRotation {
  std::vector<float> cosines;  // [pairs]
  std::vector<float> sines;    // The same.
};
// `cosines` and `sines` are [positions][pairs].
MeanRotation MeanRotationOf(std::span<const float> cosines, std::span<const float> sines,
                            size_t pairs);

// Fills `offsets`, [heads][head_dim], with the mean over all positions of the rotated bias, which
// has the same shape. This is the constant with the least mean squared difference from it. The
// channels behind the pairs are not rotated.
void FillKeyOffsets(const MeanRotation& rotation, size_t head_dim, std::span<const float> bias,
                    std::span<float> offsets);

}  // namespace cria
