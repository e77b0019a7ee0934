#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "decode/embedding.h"
#include "decode/layer_block.h"

namespace cria {

// Models with hidden_size_per_layer_input (Gemma 3n and 4) have some numbers for each layer and row
// that depend on the row's token alone: a row of a table, and a normalized product of the
// embedding. The table is much larger than what a token reads of it, so its rows are read from the
// file.
class PerLayerInputs {
 public:
  struct Regions {
    ArenaLayout::RegionId inputs;     // f32 [chunk][per_layer_channels]
    ArenaLayout::RegionId gates;      // f32 [chunk][hidden_size_per_layer_input], of PerLayerBlock.
    ArenaLayout::RegionId row;        // f32 [per_layer_channels]: a token's rows of the table.
    ArenaLayout::RegionId table_row;  // The rows as they are stored, with their scales.
  };
  // All are empty if the model has no such inputs.
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);

  // All must outlive the object.
  static Result<PerLayerInputs> Create(const LayerContext& context, const ModelFile& file,
                                       const Regions& regions, const Arena& arena,
                                       const ArenaLayout& layout);

  void AddPlaces(TensorPlaces& places);

  // Computes the inputs of all rows, whose embeddings are the rows of the hidden state.
  Status Compute(std::span<const int32_t> tokens);
  // Leaves only `rows`, in ascending order: they become the first rows.
  void Keep(std::span<const uint32_t> rows) const;

  // The inputs of a layer in the first row. From row to row, there are per_layer_channels.
  const float* OfLayer(size_t layer) const {
    return inputs_ + layer * config_.hidden_size_per_layer_input;
  }

 private:
  PerLayerInputs(const LayerContext& context, EmbeddingReader table, float* inputs, float* row);

  const ModelConfig& config_;
  const Workers& workers_;
  const HiddenState& hidden_;
  EmbeddingReader table_;
  float* const inputs_;
  float* const row_;
  Projection projection_;
  const float* norm_ = nullptr;  // [hidden_size_per_layer_input]
};

// The last block of a layer of such a model: proj(act(gate(h)) * input), of the hidden state h that
// is not normalized.
class PerLayerBlock final : public FeedForward {
 public:
  // `gates` is the planned region, `inputs` is PerLayerInputs::OfLayer. All must outlive the
  // object.
  PerLayerBlock(const LayerContext& context, const float* inputs, float* gates);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return gate_; }
  const float* output_bias() const override { return nullptr; }
  Status Run(size_t rows) override;
  Status RunProducts(size_t rows) override;

 private:
  const float* const inputs_;
  float* const gates_;
  Projection gate_;
  Projection projection_;
};

}  // namespace cria
