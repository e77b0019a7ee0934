#include "decode/state_cache.h"

#include <algorithm>

#include "decode/gated_delta_net.h"
#include "decode/mamba2.h"
#include "decode/mtp_layer.h"
#include "decode/sequences.h"
#include "decode/short_convolution.h"

namespace cria {
namespace {

StateSize SizeOfKind(const ModelConfig& config, const LayerKind& kind) {
  if (kind.short_conv) return ShortConvolution::SizeOf(config);
  if (kind.mamba) return Mamba2::SizeOf(config);
  return kind.linear_attention ? GatedDeltaNet::SizeOf(config) : StateSize();
}

// The layers without memory, and the number of places of each.
std::vector<StateCache::Layer> LayersOf(const DecoderShape& shape, size_t& num_places) {
  const ModelConfig& config = shape.config;
  const Sequences::Shape sequences = Sequences::ShapeOf(config, shape.options);
  num_places = sequences.pages.num_sequences + sequences.pages.num_checkpoints;
  std::vector<StateCache::Layer> layers(shape.num_keeping_layers());
  for (size_t i = 0; i < layers.size(); ++i) {
    StateCache::Layer& layer = layers[i];
    layer.size = shape.is_mtp_hidden(i) ? MtpLayer::SizeOf(config)
                                        : SizeOfKind(config, config.layer_kind(i));
    layer.max_rows = sequences.max_state_rows;
    layer.place_elements = layer.size.state_elements + layer.max_rows * layer.size.row_elements;
  }
  return layers;
}

}  // namespace

StateCache::Regions StateCache::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  size_t num_places = 0;
  uint64_t elements = 0;
  for (const Layer& layer : LayersOf(shape, num_places)) {
    elements += uint64_t{num_places} * layer.place_elements;
  }
  return {.states = layout.Add("recurrent states", elements * sizeof(float), kWholeLife)};
}

uint64_t StateCache::BytesPerToken(const ModelConfig& config) {
  uint64_t elements = 0;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    elements += SizeOfKind(config, config.layer_kind(i)).state_elements;
  }
  return elements * sizeof(float);
}

StateCache::StateCache(const DecoderShape& shape, const Regions& regions, const ArenaView& arena) {
  size_t num_places = 0;
  layers_ = LayersOf(shape, num_places);
  auto* states = arena.Pointer<float>(regions.states);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (!shape.is_mtp_hidden(i) && shape.config.layer_kind(i).has_attention()) continue;
    layers_[i].places = states;
    states += num_places * layers_[i].place_elements;
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
