#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reference/reference_model.h"

namespace cria::reference {

// The experts of one layer of gpt-oss, under the names that its class gives them.
class ReferenceGptOssExperts {
 public:
  // The values of a tensor with this name and shape; throws if there is none.
  using FindTensor =
      std::function<const float*(const std::string& name, const std::vector<size_t>& shape)>;

  // `prefix` is of the layer. Keeps references to `config` and to what `find` returns.
  ReferenceGptOssExperts(const ReferenceConfig& config, const std::string& prefix,
                         const FindTensor& find);

  // What the chosen experts make of a normalized hidden state.
  std::vector<double> Of(const std::vector<double>& normed) const;

 private:
  // What one expert makes of it.
  std::vector<double> Expert(size_t expert, const std::vector<double>& normed) const;

  const ReferenceConfig& config_;
  const size_t width_;
  const float* router_;        // [num_experts, hidden_size]
  const float* router_bias_;   // [num_experts]
  const float* gate_up_;       // [num_experts, hidden_size, 2 * width]
  const float* gate_up_bias_;  // [num_experts, 2 * width]
  const float* down_;          // [num_experts, width, hidden_size]
  const float* down_bias_;     // [num_experts, hidden_size]
};

}  // namespace cria::reference
