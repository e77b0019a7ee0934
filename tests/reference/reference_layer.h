#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reference/reference_delta_net.h"
#include "reference/reference_gpt_oss.h"
#include "reference/reference_mamba.h"
#include "reference/reference_mixture.h"
#include "reference/reference_model.h"
#include "reference/reference_short_conv.h"

namespace cria::reference {

// What ReferenceDecoder computes a layer from, and what the layer keeps of the tokens so far.
struct ReferenceLayer {
  // The norms are [hidden_size], and null where the model has none.
  const float* attention_input_norm;
  const float* attention_output_norm;
  const float* mlp_input_norm;
  const float* mlp_output_norm;
  std::optional<ReferenceShortConv> short_conv;  // If there is one, there is no attention.
  std::optional<ReferenceDeltaNet> delta_net;
  std::optional<ReferenceMamba> mamba;
  const float* q_proj;  // [num_attention_heads * head_dim, hidden_size]
  const float* k_proj;  // [num_key_value_heads * head_dim, hidden_size]
  const float* v_proj;  // The same.
  const float* o_proj;  // [hidden_size, num_attention_heads * head_dim]
  std::optional<ReferenceMixture> mixture;
  std::optional<ReferenceGptOssExperts> gpt_oss;
  const float* gate_proj;  // [intermediate_size, hidden_size]; null in a mixture.
  const float* up_proj;    // The same.
  const float* down_proj;  // [hidden_size, intermediate_size]
  const float* sinks;      // [num_attention_heads]; null where the model has none, as all that
                           // follow.
  const float* q_bias;
  const float* k_bias;
  const float* v_bias;
  const float* o_bias;
  const float* gate_bias;
  const float* up_bias;
  const float* down_bias;
  const float* q_norm;  // [head_dim], or of all heads
  const float* k_norm;  // The same.
  const float* gate;    // [num_attention_heads, hidden_size]
  // The numbers of xIELU, one each.
  const float* alpha_p;
  const float* alpha_n;
  const float* beta;
  const float* eps;
  const float* layer_scalar;  // One number.
  // Where experts are beside a dense feed-forward: the norms of what that writes, and of what
  // experts read and write.
  const float* dense_output_norm;
  const float* experts_norm;
  const float* experts_output_norm;
  ReferenceAttention attention;
  std::vector<double> rope_frequencies;  // [turned_channels / 2]
  std::vector<double> keys;              // [position][num_key_value_heads][head_dim], rotated.
  std::vector<double> values;            // [position][num_key_value_heads][head_dim]
};

// The values of the tensor that has this name in Llama's class. Throws std::runtime_error if the
// model has none, or one of another shape.
const float* Weights(const ReferenceModel& model, const std::string& name,
                     const std::vector<size_t>& shape);

// A layer like the model's layer `index`, whose tensors' names begin with `prefix`. Refers to
// `model`. `context` as in reference_rope.h.
ReferenceLayer MakeLayer(const ReferenceModel& model, const std::string& prefix, size_t index,
                         size_t context);

}  // namespace cria::reference
