#pragma once

#include <cstddef>

#include "decode/layer_block.h"

namespace cria {

// down_proj(act(up_proj(x))): a feed-forward without a gate.
class UngatedFeedForward final : public FeedForward {
 public:
  // `rows` is the region of DenseFeedForward. All must outlive the object.
  UngatedFeedForward(const LayerContext& context, size_t layer, float* rows);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return up_proj_; }
  const float* output_bias() const override { return down_bias_; }
  Status Run(size_t rows) override;
  Status RunProducts(size_t rows) override;

 private:
  void Activate(size_t rows) const;

  const size_t layer_;
  float* const inner_;  // [rows][intermediate_size]
  Projection up_proj_;
  Projection down_proj_;
  // These are null if the model does not have them.
  const float* up_bias_ = nullptr;    // [intermediate_size]
  const float* down_bias_ = nullptr;  // [hidden_size]
};

}  // namespace cria
