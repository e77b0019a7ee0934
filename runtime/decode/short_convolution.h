#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "decode/layer_block.h"
#include "decode/state_cache.h"
#include "ops/short_convolution.h"

namespace cria {

// The gated short convolution of LFM2 (Liquid AI 2025): a product makes two gates and an input of
// each row, and a causal convolution over the last conv_L_cache rows runs between the gates. What
// later rows need is the gated input of the last rows, which is the layer's recurrent state.
class ShortConvolution final : public TokenMixer {
 public:
  // The buffer, which all layers share.
  struct Regions {
    ArenaLayout::RegionId projected;  // f32 [chunk][3 * conv_channels]
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);
  // The size of a layer's state.
  static StateSize SizeOf(const ModelConfig& config);

  // `projected` is the region. All must outlive the object.
  ShortConvolution(const LayerContext& context, float* projected, const StateCache::Layer& states);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return in_proj_; }
  const float* output_bias() const override { return out_bias_; }
  Status Store(const BatchPlacement& placement, size_t rows) override;
  void Keep(std::span<const uint32_t> rows) override;
  Status Mix(const BatchPlacement& placement, size_t rows) override;
  Status RunProducts(size_t rows, size_t mixed_rows) override;
  std::span<float> StateAfter(size_t place, size_t num_rows,
                              std::span<float> scratch) const override;

 private:
  // The part of a row that ops::ShortConvolution leaves its output in.
  float* Output(size_t row) const { return projected_ + (3 * row + 1) * channels_; }
  // Computes channels [begin, end) of the rows of a run, which begin at `projected`.
  void RunChannels(const StateRun& run, float* projected, size_t begin, size_t end) const;

  const size_t channels_;
  float* const projected_;
  const StateCache::Layer& states_;

  Projection in_proj_;
  Projection out_proj_;
  const float* weight_ = nullptr;  // [conv_L_cache][conv_channels]
  // These are null if the model does not have them.
  const float* in_bias_ = nullptr;   // [3 * conv_channels]
  const float* bias_ = nullptr;      // [conv_channels]
  const float* out_bias_ = nullptr;  // [hidden_size]
};

}  // namespace cria
