#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cria/error.h"

namespace cria {

inline constexpr uint32_t kMaxHeadDim = 1024;

// How rotary frequencies are stretched beyond the trained context; fields as in Hugging Face's
// `rope_scaling`.
struct RopeScaling {
  enum class Type : uint8_t { kNone, kLinear, kLlama3 };

  Type type = Type::kNone;
  float factor = 1.0f;
  float low_freq_factor = 1.0f;  // kLlama3 only, as are the next two.
  float high_freq_factor = 4.0f;
  uint32_t original_max_position_embeddings = 0;
};

// The hyperparameters of a Llama-family decoder, under Hugging Face's names.
struct ModelConfig {
  std::string architecture;  // "LlamaForCausalLM"
  uint32_t hidden_size = 0;
  uint32_t intermediate_size = 0;
  uint32_t num_hidden_layers = 0;
  uint32_t num_attention_heads = 0;
  uint32_t num_key_value_heads = 0;
  uint32_t head_dim = 0;
  uint32_t vocab_size = 0;
  uint32_t max_position_embeddings = 0;
  float rms_norm_eps = 0.0f;
  float rope_theta = 0.0f;
  RopeScaling rope_scaling;
  bool tie_word_embeddings = false;
  // In every layer, how many positions a token attends to, its own included; 0: all so far.
  uint32_t sliding_window = 0;

  size_t query_channels() const { return size_t{num_attention_heads} * head_dim; }
  size_t key_value_channels() const { return size_t{num_key_value_heads} * head_dim; }
  // The fused projection's rows: queries, then keys, then values.
  size_t qkv_channels() const { return query_channels() + 2 * key_value_channels(); }
};

// Bounds every field so that no later size computation overflows, and checks how the fields relate.
// An error names the field.
Status ValidateConfig(const ModelConfig& config);

}  // namespace cria
