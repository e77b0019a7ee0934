#include "reference/reference_per_layer.h"

#include <cmath>
#include <format>

#include "reference/reference_math.h"

namespace cria::reference {

ReferencePerLayer::ReferencePerLayer(const ReferenceConfig& config, const FindTensor& find)
    : config_(config) {
  const size_t size = config.per_layer_size;
  const size_t all = config.num_hidden_layers * size;
  const size_t hidden = config.hidden_size;
  table_ = find(config.prefix + "embed_tokens_per_layer.weight", {config.per_layer_rows, all});
  projection_ = find(config.prefix + "per_layer_model_projection.weight", {all, hidden});
  norm_ = find(config.prefix + "per_layer_projection_norm.weight", {size});
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = std::format("{}layers.{}.", config.prefix, i);
    layers_.push_back({find(layer + "per_layer_input_gate.weight", {size, hidden}),
                       find(layer + "per_layer_projection.weight", {hidden, size}),
                       find(layer + "post_per_layer_input_norm.weight", {hidden})});
  }
}

std::vector<double> ReferencePerLayer::Norm(const std::vector<double>& x,
                                            const float* weight) const {
  double mean_square = 0.0;
  for (const double value : x) mean_square += value * value / static_cast<double>(x.size());
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / std::sqrt(mean_square + config_.rms_norm_eps) * weight[i];
  }
  return y;
}

std::vector<double> ReferencePerLayer::Inputs(size_t id,
                                              const std::vector<double>& embedding) const {
  const size_t size = config_.per_layer_size;
  const size_t all = config_.num_hidden_layers * size;
  std::vector<double> inputs = MatrixTimesVector(projection_, all, embedding);
  for (double& value : inputs) value /= std::sqrt(static_cast<double>(config_.hidden_size));
  for (size_t start = 0; start < all; start += size) {
    const auto part = inputs.begin() + static_cast<std::ptrdiff_t>(start);
    const std::vector<double> normed =
        Norm({part, part + static_cast<std::ptrdiff_t>(size)}, norm_);
    for (size_t i = 0; i < size; ++i) {
      const double row = table_[id * all + start + i] * std::sqrt(static_cast<double>(size));
      inputs[start + i] = (normed[i] + row) / std::sqrt(2.0);
    }
  }
  return inputs;
}

std::vector<double> ReferencePerLayer::Of(size_t layer, const std::vector<double>& x,
                                          const std::vector<double>& inputs) const {
  const size_t size = config_.per_layer_size;
  std::vector<double> gates = MatrixTimesVector(layers_[layer].gate, size, x);
  for (size_t i = 0; i < size; ++i) {
    gates[i] = Activate(config_.activation, gates[i]) * inputs[layer * size + i];
  }
  return Norm(MatrixTimesVector(layers_[layer].projection, config_.hidden_size, gates),
              layers_[layer].norm);
}

}  // namespace cria::reference
