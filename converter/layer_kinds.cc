#include "converter/layer_kinds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cria {
namespace {

void ListKinds(const AttentionKinds& kinds, const std::vector<bool>& is_sliding,
               ModelConfig& config) {
  config.layer_kinds.clear();
  config.kind_of_layer.clear();
  for (const bool slides : is_sliding) {
    const LayerKind& kind = slides ? kinds.sliding : kinds.full;
    const auto known = std::ranges::find(config.layer_kinds, kind);
    config.kind_of_layer.push_back(static_cast<uint8_t>(known - config.layer_kinds.begin()));
    if (known == config.layer_kinds.end()) config.layer_kinds.push_back(kind);
  }
  // Without layers, which ValidateConfig refuses, there is one kind, too.
  if (config.layer_kinds.empty()) config.layer_kinds.push_back(kinds.full);
  if (config.layer_kinds.size() == 1) config.kind_of_layer.clear();
}

}  // namespace

void SetLayerKinds(AttentionKinds kinds, const std::vector<bool>& is_sliding, ModelConfig& config) {
  ListKinds(kinds, is_sliding, config);
  if (kinds.sliding.sliding_window < config.longest_context()) return;
  kinds.sliding.sliding_window = 0;
  ListKinds(kinds, is_sliding, config);
}

}  // namespace cria
