#pragma once

#include <cstddef>

#include "core/arena.h"
#include "decode/layer_block.h"

namespace cria {

// output[i] = act(gate[i]) * up[i]; `output` may be `gate`.
using GatedAct = void (*)(const float* gate, const float* up, size_t size, float* output);
GatedAct GatedActOf(HiddenAct act);

// The width of the feed-forwards that are no experts: 0 if there are none.
size_t WidestDenseFeedForward(const ModelConfig& config);

// down_proj(act(gate_proj(x)) * up_proj(x)) (Shazeer 2020): the feed-forward of most models, and
// the expert of a mixture that all rows share.
class DenseFeedForward final : public FeedForward {
 public:
  // f32 [chunk][gate_up_rows(WidestDenseFeedForward)], which all layers share.
  static ArenaLayout::RegionId Plan(const DecoderShape& shape, ArenaLayout& layout);

  // The tensors of a layer's feed-forward or of a shared expert.
  struct Roles {
    TensorRole gate_up_proj = TensorRole::kGateUpProj;
    TensorRole down_proj = TensorRole::kDownProj;
  };

  // `gate_up` is the planned region. All must outlive the object.
  DenseFeedForward(const LayerContext& context, size_t intermediate_size, float* gate_up,
                   const Roles& roles);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return gate_up_proj_; }
  const float* output_bias() const override { return down_bias_; }
  Status Run(size_t rows) override;
  Status RunProducts(size_t rows) override;

 private:
  void Activate(size_t rows) const;

  const size_t intermediate_size_;
  float* const gate_up_;
  const Roles roles_;
  const GatedAct gated_act_;
  Projection gate_up_proj_;
  Projection down_proj_;
  // These are null if the model does not have them.
  const float* gate_up_bias_ = nullptr;  // [2 * intermediate_size]
  const float* down_bias_ = nullptr;     // [hidden_size]
};

}  // namespace cria
