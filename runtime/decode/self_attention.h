#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "decode/kv_cache.h"
#include "decode/layer_block.h"
#include "ops/attention.h"

namespace cria {

// Attention over the KV cache (Vaswani et al. 2017), with rope (Su et al. 2021), grouped queries
// (Ainslie et al. 2023), and what the configuration adds: windows, biases, norms of queries, keys
// and values, soft caps, gates of the heads' outputs, and keys and values of an earlier layer.
class SelfAttention final : public TokenMixer {
 public:
  // The buffers, which all layers share.
  struct Regions {
    ArenaLayout::RegionId qkv;      // f32 [chunk][most_qkv_channels]
    ArenaLayout::RegionId gates;    // f32 [chunk][num_attention_heads], with use_attention_gate.
    ArenaLayout::RegionId scratch;  // Scratch of ops::Attention.
    ArenaLayout::RegionId output;   // f32 [chunk][most_query_channels]
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);
  struct Buffers {
    Buffers(const Regions& regions, const ArenaView& arena);

    float* qkv;
    float* gates;
    std::span<std::byte> scratch;
    float* output;
  };

  // Tokens attend to positions from `begin_position` on. All must outlive the object.
  SelfAttention(const LayerContext& context, const LayerKind& kind, const Buffers& buffers,
                const KvCache::Layer& cache, size_t begin_position = 0);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return qkv_proj_; }
  const float* output_bias() const override { return o_bias_; }
  Status Store(const BatchPlacement& placement, size_t rows) override;
  Status StoreLast(const BatchPlacement& placement, size_t rows) override;
  void Keep(std::span<const uint32_t> rows) override;
  Status Mix(const BatchPlacement& placement, size_t rows) override;
  Status RunProducts(size_t rows, size_t mixed_rows) override;

  // [key_value_heads][head_dim], or null.
  const float* key_bias() const {
    return qkv_bias_ == nullptr ? nullptr : qkv_bias_ + query_channels_;
  }

 private:
  // Finishes Store after the product.
  Status StoreProjected(const BatchPlacement& placement, size_t rows);
  // Whether queries and keys are normalized before RotateAndStore, because other ranks have a part.
  bool IsNormalizedOverRanks() const;
  void NormalizeHeads(float* heads, size_t channels, const float* weight) const;
  bool has_gates() const { return gate_ != nullptr || config_.attn_output_gate; }
  // With use_attention_gate: computes the sigmoids before the input is overwritten.
  void MakeGates(size_t rows) const;
  // With attn_output_gate: the row's gates behind its values, [query_channels].
  float* OutputGates(size_t row) const;
  void MultiplyByGates(size_t row) const;
  void RotateAndStore(const BatchPlacement& placement, size_t rows) const;
  void Attend(const BatchPlacement& placement, size_t rows) const;

  // The sizes of the layer's kind. A layer that does not store keys and values has no rows of them.
  const LayerKind& kind_;
  const size_t query_channels_;
  const size_t key_value_channels_;
  const size_t qkv_channels_;
  ops::AttentionShape shape_;  // Its sinks are loaded later.
  const Buffers buffers_;
  const KvCache::Layer& cache_;

  Projection qkv_proj_;
  Projection o_proj_;
  // These are null if the model does not have them.
  const float* qkv_bias_ = nullptr;  // [qkv_channels]
  // [head_dim]; with joint_qk_norm [query_channels] and [key_value_channels]. The second one is
  // null without keys, too.
  const float* q_norm_ = nullptr;
  const float* k_norm_ = nullptr;
  const float* o_bias_ = nullptr;  // [hidden_size]
  const float* gate_ = nullptr;    // [num_attention_heads, hidden_size]
};

}  // namespace cria
