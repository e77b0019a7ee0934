#pragma once

// Gemma 1 to 3: rows of kFamilies, whose fields hf_families.h explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 8> kGemmaNeverNull = {
    "hidden_size", "intermediate_size",       "num_hidden_layers",   "num_attention_heads",
    "vocab_size",  "max_position_embeddings", "num_key_value_heads", "head_dim"};
inline constexpr Family kGemma = {.architecture = "GemmaForCausalLM",
                                  .model_type = "gemma",
                                  .num_key_value_heads = 16,
                                  .head_dim = 256,
                                  .tie_word_embeddings = true,
                                  .attention_bias = AttentionBias::kByField,
                                  .activation = "gelu_pytorch_tanh",
                                  .window = Window::kRefused,
                                  .multipliers = Multipliers::kGemma,
                                  .never_null = kGemmaNeverNull};

inline constexpr std::array<std::string_view, 3> kGemma2Fields = {
    "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"};
inline constexpr std::array<std::string_view, 4> kGemma3Fields = {
    "query_pre_attn_scalar", "final_logit_softcapping", "rope_local_base_freq",
    "sliding_window_pattern"};
inline constexpr std::array<std::string_view, 10> kGemma2NeverNull = {
    "hidden_size",         "intermediate_size", "num_hidden_layers",
    "num_attention_heads", "vocab_size",        "max_position_embeddings",
    "num_key_value_heads", "head_dim",          "query_pre_attn_scalar",
    "hidden_activation"};
inline constexpr std::array<std::string_view, 3> kGemma3WithVisionFields = {
    "query_pre_attn_scalar", "rope_local_base_freq", "sliding_window_pattern"};
inline constexpr std::array<std::string_view, 11> kGemma3NeverNull = {"hidden_size",
                                                                      "intermediate_size",
                                                                      "num_hidden_layers",
                                                                      "num_attention_heads",
                                                                      "vocab_size",
                                                                      "max_position_embeddings",
                                                                      "num_key_value_heads",
                                                                      "head_dim",
                                                                      "query_pre_attn_scalar",
                                                                      "hidden_activation",
                                                                      "sliding_window_pattern"};

inline constexpr Family kGemma2 = {.architecture = "Gemma2ForCausalLM",
                                   .model_type = "gemma2",
                                   .num_key_value_heads = 4,
                                   .head_dim = 256,
                                   .tie_word_embeddings = true,
                                   .attention_bias = AttentionBias::kByField,
                                   .norm_placement = NormPlacement::kBeforeAndAfter,
                                   .activation_field = "hidden_activation",
                                   .activation = "gelu_pytorch_tanh",
                                   .window = Window::kPattern,
                                   .sliding_window = 4096,
                                   .sliding_window_pattern = 2,
                                   .multipliers = Multipliers::kGemmaWithScoreField,
                                   .attn_logit_softcapping = 50.0f,
                                   .final_logit_softcapping = 30.0f,
                                   .own_fields = kGemma2Fields,
                                   .never_null = kGemma2NeverNull};

inline constexpr DefaultSizes kGemma3Sizes = {.hidden_size = 2304,
                                              .intermediate_size = 9216,
                                              .num_hidden_layers = 26,
                                              .num_attention_heads = 8,
                                              .vocab_size = 262208,
                                              .max_position_embeddings = 131072};

inline constexpr Family kGemma3 = {.architecture = "Gemma3ForCausalLM",
                                   .model_type = "gemma3_text",
                                   .default_sizes = &kGemma3Sizes,
                                   .num_key_value_heads = 4,
                                   .head_dim = 256,
                                   .tie_word_embeddings = true,
                                   .attention_bias = AttentionBias::kByField,
                                   .qk_norm = true,
                                   .norm_placement = NormPlacement::kBeforeAndAfter,
                                   .activation_field = "hidden_activation",
                                   .activation = "gelu_pytorch_tanh",
                                   .window = Window::kPattern,
                                   .sliding_window = 4096,
                                   .sliding_window_pattern = 6,
                                   .rope_fields = RopeFields::kGemma3,
                                   .rope_theta = 1000000.0f,
                                   .multipliers = Multipliers::kGemmaWithScoreField,
                                   .own_fields = kGemma3Fields,
                                   .never_null = kGemma3NeverNull};

}  // namespace cria
