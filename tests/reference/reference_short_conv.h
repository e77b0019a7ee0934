#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reference/reference_model.h"

namespace cria::reference {

// The short convolution of one layer of LFM2, under the names that its class gives the tensors.
class ReferenceShortConv {
 public:
  // The values of a tensor with this name and shape; throws if there is none.
  using FindTensor =
      std::function<const float*(const std::string& name, const std::vector<size_t>& shape)>;

  // `prefix` is of the layer. Keeps references to `config` and to what `find` returns.
  ReferenceShortConv(const ReferenceConfig& config, const std::string& prefix,
                     const FindTensor& find);

  // What the block makes of the normalized hidden state of the next token.
  std::vector<double> Of(const std::vector<double>& normed);

  // Starts a new sequence.
  void Reset() { gated_.clear(); }

 private:
  const ReferenceConfig& config_;
  const float* in_proj_;            // [3 * hidden_size, hidden_size]
  const float* conv_;               // [hidden_size, 1, conv_L_cache]
  const float* out_proj_;           // [hidden_size, hidden_size]
  const float* in_bias_ = nullptr;  // Null where the model has none, like the next two.
  const float* conv_bias_ = nullptr;
  const float* out_bias_ = nullptr;
  std::vector<std::vector<double>> gated_;  // B * x of every token so far.
};

}  // namespace cria::reference
