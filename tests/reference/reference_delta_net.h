#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reference/reference_model.h"

namespace cria::reference {

// The gated delta net of one layer of Qwen3.5 or Qwen3-Next, token by token, under the names that
// their classes give the tensors.
class ReferenceDeltaNet {
 public:
  // The values of a tensor with this name and shape; throws if there is none.
  using FindTensor =
      std::function<const float*(const std::string& name, const std::vector<size_t>& shape)>;

  // `prefix` is of the layer. Keeps references to `config` and to what `find` returns.
  ReferenceDeltaNet(const ReferenceConfig& config, const std::string& prefix,
                    const FindTensor& find);

  // What the block makes of the normalized hidden state of the next token.
  std::vector<double> Of(const std::vector<double>& normed);

  // Starts a new sequence.
  void Reset();

 private:
  // What the projections make of a token.
  struct Projected {
    std::vector<double> qkv;  // Queries, keys and values, of all heads each.
    std::vector<double> z;    // [value heads][value_head_dim]
    std::vector<double> b;    // [value heads]
    std::vector<double> a;
  };
  Projected Project(const std::vector<double>& normed) const;
  Projected Separate(const std::vector<double>& qkvz, const std::vector<double>& ba) const;
  // The last taps of every channel, and SiLU.
  std::vector<double> Convolve(const std::vector<double>& qkv);

  const ReferenceConfig& config_;
  const ReferenceLinear& sizes_;
  const size_t keys_;  // Channels of all heads.
  const size_t values_;
  const float* conv_;  // [2 * keys + values, 1, kernel]
  const float* dt_bias_;
  const float* a_log_;
  const float* norm_;
  const float* out_proj_;
  // Qwen3.5's, or those of Qwen3-Next, whose rows alternate by heads of keys.
  const float* qkv_ = nullptr;
  const float* z_ = nullptr;
  const float* b_ = nullptr;
  const float* a_ = nullptr;
  const float* qkvz_ = nullptr;
  const float* ba_ = nullptr;
  std::vector<std::vector<double>> inputs_;  // What the convolution read, for every token so far.
  std::vector<double> state_;                // [value heads][key_head_dim][value_head_dim]
};

}  // namespace cria::reference
