#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reference/reference_model.h"

namespace cria::reference {

// The inputs that each layer of Gemma 3n and 4 has for a token, as their classes have them.
class ReferencePerLayer {
 public:
  // The values of a tensor with this name and shape; throws if there is none.
  using FindTensor =
      std::function<const float*(const std::string& name, const std::vector<size_t>& shape)>;

  // Keeps references to `config` and to what `find` returns.
  ReferencePerLayer(const ReferenceConfig& config, const FindTensor& find);

  // The inputs of all layers, [num_hidden_layers][per_layer_size], for a token with this scaled
  // embedding: (sqrt(size) * row + norm(W e / sqrt(hidden_size))) / sqrt(2).
  std::vector<double> Inputs(size_t id, const std::vector<double>& embedding) const;
  // What a layer adds to the hidden state x: norm(P (act(G x) * inputs)).
  std::vector<double> Of(size_t layer, const std::vector<double>& x,
                         const std::vector<double>& inputs) const;

 private:
  struct Layer {
    const float* gate;        // [per_layer_size, hidden_size]
    const float* projection;  // [hidden_size, per_layer_size]
    const float* norm;        // [hidden_size]
  };

  std::vector<double> Norm(const std::vector<double>& x, const float* weight) const;

  const ReferenceConfig& config_;
  const float* table_;       // [rows, num_hidden_layers * per_layer_size]
  const float* projection_;  // [num_hidden_layers * per_layer_size, hidden_size]
  const float* norm_;        // [per_layer_size]
  std::vector<Layer> layers_;
};

}  // namespace cria::reference
