#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reference/reference_model.h"

namespace cria::reference {

// The Mamba-2 of one layer of Granite 4.0, token by token, under the names that its class gives the
// tensors.
class ReferenceMamba {
 public:
  // The values of a tensor with this name and shape; throws if there is none.
  using FindTensor =
      std::function<const float*(const std::string& name, const std::vector<size_t>& shape)>;

  // `prefix` is of the layer. Keeps references to `config` and to what `find` returns.
  ReferenceMamba(const ReferenceConfig& config, const std::string& prefix, const FindTensor& find);

  // What the block makes of the normalized hidden state of the next token.
  std::vector<double> Of(const std::vector<double>& normed);

  // Starts a new sequence.
  void Reset();

 private:
  // The last taps of every channel, and SiLU.
  std::vector<double> Convolve(const std::vector<double>& channels);
  // The root mean square of each group of heads becomes 1, times the weights of the norm.
  void Normalize(std::vector<double>& output) const;

  const ReferenceConfig& config_;
  const ReferenceMambaSizes& sizes_;
  const size_t channels_;  // All heads have so many.
  const size_t state_;     // B of all groups, and C of all groups.
  const float* in_proj_;   // Gates, x, B, C and time steps.
  const float* conv_;      // [channels + 2 * state, 1, kernel]
  const float* dt_bias_;
  const float* a_log_;
  const float* d_;
  const float* norm_;
  const float* out_proj_;
  const float* in_bias_ = nullptr;  // Null where the model has none, like the next two.
  const float* conv_bias_ = nullptr;
  const float* out_bias_ = nullptr;
  std::vector<std::vector<double>> inputs_;  // What the convolution read, for every token so far.
  std::vector<double> states_;               // [heads][head_dim][state size]
};

}  // namespace cria::reference
