#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "decode/layer_block.h"
#include "decode/state_cache.h"
#include "decode/state_convolution.h"
#include "ops/state_space.h"

namespace cria {

// Mamba-2 (Dao and Gu 2024) as a token mixer, as Granite 4.0 has it. Inputs, keys and queries (the
// paper's x, B and C) of each row go through a causal convolution, each head has a matrix as its
// state, which forgets at a rate that the row's time step decides, and what is read from it is
// gated and normalized.
//
// The state is the matrices, [heads] of ops::HeadStateSize floats each, then the inputs of the
// convolution for its earlier taps. StateConvolution says what is kept behind it.
class Mamba2 final : public TokenMixer {
 public:
  // The buffers, which all layers share.
  struct Regions {
    ArenaLayout::RegionId projected;  // f32 [chunk][mamba_in_channels]
    // f32 [chunk][heads + mamba_conv_channels]: decays, and what the convolution makes of the rest.
    ArenaLayout::RegionId convolved;
    ArenaLayout::RegionId steps;  // f32 [chunk][heads]: time steps.
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);
  // The size of a layer's state.
  static StateSize SizeOf(const ModelConfig& config);
  struct Buffers {
    Buffers(const Regions& regions, const ArenaView& arena);

    float* projected;
    float* convolved;
    float* steps;
  };

  // All must outlive the object.
  Mamba2(const LayerContext& context, const Buffers& buffers, const StateCache::Layer& states);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return in_proj_; }
  const float* output_bias() const override { return weights_.out_bias; }
  Status Store(const BatchPlacement& placement, size_t rows) override;
  void Keep(std::span<const uint32_t> rows) override;
  Status Mix(const BatchPlacement& placement, size_t rows) override;
  Status RunProducts(size_t rows, size_t mixed_rows) override;
  std::span<float> StateAfter(size_t place, size_t num_rows,
                              std::span<float> scratch) const override;

 private:
  struct Weights {
    const float* dt_proj = nullptr;      // [heads, hidden_size]
    const float* conv_weight = nullptr;  // [mamba_d_conv][mamba_conv_channels]
    const float* dt_bias = nullptr;      // [heads]
    const float* decay_rate = nullptr;   // [heads]
    const float* direct = nullptr;       // [heads]: the paper's D.
    const float* norm = nullptr;         // [mamba_channels]
    // These are null if the model does not have them.
    const float* in_bias = nullptr;    // [mamba_in_channels + heads]
    const float* conv_bias = nullptr;  // [mamba_conv_channels]
    const float* out_bias = nullptr;   // [hidden_size]
  };

  // Where a row's gates are, which its output takes the place of.
  float* Output(size_t row) const { return buffers_.projected + row * in_channels_; }
  // Where a row's heads are read from the states to.
  float* Reads(size_t row) const { return Output(row) + channels_; }
  // A row's decays; behind them are the inputs of heads, then keys and queries.
  float* Convolved(size_t row) const { return buffers_.convolved + row * convolved_stride_; }
  StateConvolution Convolution() const;
  // The part of a head in rows of updates: decays, inputs times steps, keys.
  ops::StateUpdates UpdatesOf(size_t head, float* rows, size_t stride, size_t count) const;
  size_t GroupOf(size_t head) const;

  // Computes time steps and decays of a row, and adds biases.
  void MakeSteps(size_t row) const;
  // Leaves what goes around the states in Reads(row), and multiplies the heads' inputs by steps.
  void ScaleInputs(size_t row) const;
  // Computes the rows of a run, which begin at row `first`, for one head.
  void RunHead(const StateRun& run, size_t first, size_t head) const;
  void GateOutput(size_t row) const;

  const Buffers buffers_;
  const StateCache::Layer& states_;
  const size_t channels_;
  const size_t in_channels_;
  const size_t convolved_stride_;
  const size_t head_state_size_;

  Projection in_proj_;
  Projection out_proj_;
  Weights weights_;
};

}  // namespace cria
