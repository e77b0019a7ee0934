#include "decode/state_cache.h"

#include <algorithm>

#include "decode/sequences.h"

namespace cria {
namespace {

struct StateSizes {
  size_t num_places;
  StateCache::Layer layer;  // Without memory.
};

StateSizes SizesOf(const DecoderShape& shape) {
  const ModelConfig& config = shape.config;
  const Sequences::Shape sequences = Sequences::ShapeOf(config, shape.options);
  // The inputs of a convolution's earlier taps.
  const size_t state = config.has_short_conv() ? (config.conv_L_cache - 1) * config.hidden_size : 0;
  const size_t row = config.has_short_conv() ? config.hidden_size : 0;
  return {.num_places = sequences.pages.num_sequences + sequences.pages.num_checkpoints,
          .layer = {.place_elements = state + sequences.max_state_rows * row,
                    .state_elements = state,
                    .row_elements = row}};
}

size_t NumRecurrentLayers(const ModelConfig& config) {
  size_t count = 0;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    count += config.layer_kind(i).short_conv ? 1 : 0;
  }
  return count;
}

}  // namespace

StateCache::Regions StateCache::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const StateSizes sizes = SizesOf(shape);
  const uint64_t elements =
      uint64_t{NumRecurrentLayers(shape.config)} * sizes.num_places * sizes.layer.place_elements;
  return {.states = layout.Add("recurrent states", elements * sizeof(float), kWholeLife)};
}

StateCache::StateCache(const DecoderShape& shape, const Regions& regions, const ArenaView& arena)
    : layers_(shape.config.num_hidden_layers) {
  const StateSizes sizes = SizesOf(shape);
  auto* states = arena.Pointer<float>(regions.states);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (!shape.config.layer_kind(i).short_conv) continue;
    layers_[i] = sizes.layer;
    layers_[i].places = states;
    states += sizes.num_places * sizes.layer.place_elements;
  }
}

void StateCache::Copy(std::span<const StateCopy> copies, const ThreadPool& pool) const {
  if (copies.empty()) return;
  pool.ParallelFor(layers_.size(), [&](size_t index) {
    const Layer& layer = layers_[index];
    if (layer.places == nullptr) return;
    for (const StateCopy& copy : copies) {
      std::copy_n(layer.State(copy.source), layer.place_elements, layer.State(copy.target));
    }
  });
}

}  // namespace cria
