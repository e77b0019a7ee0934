#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reference/reference_model.h"

namespace cria::reference {

// The experts of one layer of a mixture, under the names that its class gives them.
class ReferenceMixture {
 public:
  // The values of a tensor with this name and shape; throws if there is none.
  using FindTensor =
      std::function<const float*(const std::string& name, const std::vector<size_t>& shape)>;

  // `prefix` is of the layer. Keeps references to `config` and to what `find` returns.
  ReferenceMixture(const ReferenceConfig& config, const std::string& prefix,
                   const FindTensor& find);

  // What the chosen experts and the shared one make of a normalized hidden state.
  std::vector<double> Of(const std::vector<double>& normed) const { return Of(normed, normed); }
  // The same, if the router reads other rows than the experts.
  std::vector<double> Of(const std::vector<double>& normed,
                         const std::vector<double>& routed) const;

  // The experts that a normalized hidden state chooses, the most probable first.
  std::vector<size_t> ChosenBy(const std::vector<double>& normed) const;

 private:
  struct Expert {
    const float* gate_proj = nullptr;  // [width, hidden_size]
    const float* up_proj = nullptr;    // The same.
    const float* down_proj = nullptr;  // [hidden_size, width]
    size_t width = 0;
  };

  std::vector<double> Scores(const std::vector<double>& normed) const;
  void AddExpert(const Expert& expert, double weight, const std::vector<double>& normed,
                 std::vector<double>& sum) const;

  const ReferenceConfig& config_;
  const float* router_ = nullptr;       // [num_experts, hidden_size]
  const float* expert_bias_ = nullptr;  // [num_experts]; null where the model has none.
  // Gemma 4: what the router's inputs are multiplied by, [hidden_size], and the experts' weights.
  const float* router_scale_ = nullptr;
  const float* per_expert_scale_ = nullptr;  // [num_experts]
  std::vector<Expert> experts_;
  Expert shared_expert_;                       // Its width is 0 if there is none.
  const float* shared_expert_gate_ = nullptr;  // [1, hidden_size]; null: it counts whole.
};

}  // namespace cria::reference
