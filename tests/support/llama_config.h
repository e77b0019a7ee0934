#pragma once

#include "model/config.h"

namespace cria::support {

// The configuration of Llama 3.2 1B.
inline ModelConfig Llama32Of1B() {
  return {.architecture = "LlamaForCausalLM",
          .hidden_size = 2048,
          .intermediate_size = 8192,
          .num_hidden_layers = 16,
          .num_attention_heads = 32,
          .num_key_value_heads = 8,
          .head_dim = 64,
          .vocab_size = 128256,
          .max_position_embeddings = 131072,
          .rms_norm_eps = 1e-5f,
          .tie_word_embeddings = true,
          .layer_kinds = {{.rope_theta = 500000.0f,
                           .rope_scaling = {RopeScaling::Type::kLlama3, 32.0f, 1.0f, 4.0f, 8192}}}};
}

}  // namespace cria::support
