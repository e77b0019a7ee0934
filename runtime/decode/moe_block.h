#pragma once

#include <cstddef>

#include "core/arena.h"
#include "decode/feed_forward.h"
#include "decode/layer_block.h"
#include "decode/mixture.h"

namespace cria {

// The feed-forward of models with enable_moe_block (Gemma 4 26B-A4B): the sum of a dense one and of
// a mixture of experts, each with a norm of what it reads and one of what it writes. The router
// reads rows that are normalized without weights.
class MoeBlock final : public FeedForward {
 public:
  // f32 [chunk][hidden_size]: the outputs of the dense feed-forward; empty without such blocks.
  static ArenaLayout::RegionId Plan(const DecoderShape& shape, ArenaLayout& layout);

  // `gate_up` is the region of DenseFeedForward, and `outputs` is the planned one. All must outlive
  // the object.
  MoeBlock(const LayerContext& context, const LayerKind& kind,
           const MixtureOfExperts::Buffers& buffers, float* gate_up, float* outputs);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return dense_.input(); }
  const float* output_bias() const override { return nullptr; }
  Status Run(size_t rows) override;
  Status RunProducts(size_t rows) override;

 private:
  float* const outputs_;
  DenseFeedForward dense_;
  MixtureOfExperts experts_;
  const float* dense_output_norm_ = nullptr;    // [hidden_size]
  const float* experts_norm_ = nullptr;         // [hidden_size]
  const float* experts_output_norm_ = nullptr;  // [hidden_size]
};

}  // namespace cria
