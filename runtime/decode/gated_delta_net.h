#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "decode/layer_block.h"
#include "decode/state_cache.h"
#include "decode/state_convolution.h"
#include "ops/delta_rule.h"

namespace cria {

// The gated delta rule (Yang, Kautz and Hatamizadeh 2024) as a token mixer, as Qwen3-Next and
// Qwen3.5 have it. Queries, keys and values of each row go through a causal convolution, each head
// of values has a matrix as its state, which forgets at a rate that the row decides, and what is
// read from it is normalized and gated.
//
// The state is the matrices, [value heads] of ops::HeadStateSize floats each, then the inputs of
// the convolution for its earlier taps. StateConvolution says what is kept behind it.
class GatedDeltaNet final : public TokenMixer {
 public:
  // The buffers, which all layers share.
  struct Regions {
    // f32 [chunk][linear_conv_channels + linear_value_channels]: queries, keys and values before
    // the convolution, and gates.
    ArenaLayout::RegionId projected;
    // f32 [chunk][linear_conv_channels + value heads]: queries, keys and values behind it, which
    // become deltas, and decays.
    ArenaLayout::RegionId convolved;
    // f32 [chunk][2 * value heads + key heads]: betas, what decays are made of, and products of
    // queries and keys.
    ArenaLayout::RegionId scalars;
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);
  // The size of a layer's state.
  static StateSize SizeOf(const ModelConfig& config);
  struct Buffers {
    Buffers(const Regions& regions, const ArenaView& arena);

    float* projected;
    float* convolved;
    float* scalars;
  };

  // All must outlive the object.
  GatedDeltaNet(const LayerContext& context, const Buffers& buffers,
                const StateCache::Layer& states);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return in_proj_; }
  const float* output_bias() const override { return nullptr; }
  Status Store(const BatchPlacement& placement, size_t rows) override;
  void Keep(std::span<const uint32_t> rows) override;
  Status Mix(const BatchPlacement& placement, size_t rows) override;
  Status RunProducts(size_t rows, size_t mixed_rows) override;
  std::span<float> StateAfter(size_t place, size_t num_rows,
                              std::span<float> scratch) const override;

 private:
  // Where a row's gates are, which its output takes the place of.
  float* Output(size_t row) const;
  // Where a row's heads are read from the states to.
  float* Reads(size_t row) const;
  StateConvolution Convolution() const;
  size_t KeyHeadOf(size_t value_head) const;
  // The part of a value head in rows of updates.
  ops::StateUpdates UpdatesOf(size_t value_head, float* rows, size_t stride, size_t count) const;

  // Computes betas and decays of a row.
  void MakeScalars(size_t row) const;
  void NormalizeHeads(size_t row) const;
  // Computes the rows of a run, which begin at row `first`, for one value head.
  void RunHead(const StateRun& run, size_t first, size_t value_head) const;
  void GateOutput(size_t row) const;

  const Buffers buffers_;
  const StateCache::Layer& states_;
  const size_t key_channels_;
  const size_t value_channels_;
  const size_t conv_channels_;
  const size_t head_state_size_;
  // [linear_key_head_dim], all alike: norms of queries and keys have no weights, but a factor.
  const std::vector<float> query_factors_;
  const std::vector<float> key_factors_;

  Projection in_proj_;
  Projection out_proj_;
  const float* ba_proj_ = nullptr;      // [2 * value heads, hidden_size]
  const float* conv_weight_ = nullptr;  // [linear_conv_kernel_dim][linear_conv_channels]
  const float* dt_bias_ = nullptr;      // [value heads]
  const float* decay_rate_ = nullptr;   // [value heads]
  const float* norm_ = nullptr;         // [linear_value_head_dim]
};

}  // namespace cria
