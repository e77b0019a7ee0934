#include "converter/checkpoint/layer_kinds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cria {
namespace {

void ListKinds(const std::vector<LayerKind>& layers, ModelConfig& config) {
  config.layer_kinds.clear();
  config.kind_of_layer.clear();
  for (const LayerKind& layer : layers) {
    const auto known = std::ranges::find(config.layer_kinds, layer);
    config.kind_of_layer.push_back(static_cast<uint8_t>(known - config.layer_kinds.begin()));
    if (known == config.layer_kinds.end()) config.layer_kinds.push_back(layer);
  }
  // Without layers, which ValidateConfig refuses, there is one kind, too.
  if (config.layer_kinds.empty()) config.layer_kinds.emplace_back();
  if (config.layer_kinds.size() == 1) config.kind_of_layer.clear();
}

}  // namespace

void SetLayerKinds(std::vector<LayerKind> layers, ModelConfig& config) {
  ListKinds(layers, config);
  const size_t longest_context = config.longest_context();
  for (LayerKind& layer : layers) {
    if (layer.sliding_window >= longest_context) layer.sliding_window = 0;
  }
  ListKinds(layers, config);
}

}  // namespace cria
