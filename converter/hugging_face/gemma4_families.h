#pragma once

// Gemma 4: rows of kFamilies, whose fields hf_families.h explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 5> kGemma4Fields = {
    "final_logit_softcapping", "use_bidirectional_attention", "num_experts", "enable_moe_block",
    "hidden_size_per_layer_input"};
inline constexpr std::array<std::string_view, 2> kGemma4UnifiedFields = {
    "final_logit_softcapping", "use_bidirectional_attention"};
inline constexpr std::array<std::string_view, 17> kGemma4NeverNull = {"hidden_size",
                                                                      "intermediate_size",
                                                                      "num_hidden_layers",
                                                                      "num_attention_heads",
                                                                      "vocab_size",
                                                                      "max_position_embeddings",
                                                                      "num_key_value_heads",
                                                                      "head_dim",
                                                                      "hidden_activation",
                                                                      "sliding_window",
                                                                      "attention_bias",
                                                                      "attention_k_eq_v",
                                                                      "num_kv_shared_layers",
                                                                      "enable_moe_block",
                                                                      "use_double_wide_mlp",
                                                                      "hidden_size_per_layer_input",
                                                                      "vocab_size_per_layer_input"};
inline constexpr std::array kGemma4Modules = {LayerModule{"router.proj", "mlp.gate"},
                                              LayerModule{"experts", "mlp.experts"}};
inline constexpr DefaultSizes kGemma4Sizes = {.hidden_size = 2304,
                                              .intermediate_size = 9216,
                                              .num_hidden_layers = 30,
                                              .num_attention_heads = 8,
                                              .vocab_size = 262144,
                                              .max_position_embeddings = 131072};
inline constexpr DefaultSizes kGemma4UnifiedSizes = {.hidden_size = 2304,
                                                     .intermediate_size = 9216,
                                                     .num_hidden_layers = 30,
                                                     .num_attention_heads = 8,
                                                     .vocab_size = 262144,
                                                     .max_position_embeddings = 262144};

inline constexpr Family kGemma4 = {.architecture = "Gemma4ForCausalLM",
                                   .model_type = "gemma4_text",
                                   .default_sizes = &kGemma4Sizes,
                                   .num_key_value_heads = 4,
                                   .head_dim = 256,
                                   .tie_word_embeddings = true,
                                   .attention_bias = AttentionBias::kByField,
                                   .qk_norm = true,
                                   .norm_placement = NormPlacement::kBeforeAndAfter,
                                   .activation_field = "hidden_activation",
                                   .activation = "gelu_pytorch_tanh",
                                   .window = Window::kPattern,
                                   .sliding_window = 512,
                                   .sliding_window_pattern = 6,
                                   .refuses_window_of_0 = true,
                                   .rope_fields = RopeFields::kGemma4,
                                   .multipliers = Multipliers::kGemma4,
                                   .layer_modules = kGemma4Modules,
                                   .is_gemma4 = true,
                                   .own_fields = kGemma4Fields,
                                   .never_null = kGemma4NeverNull};

// The 12B, whose class has neither per-layer inputs nor experts.
constexpr Family Gemma4Unified() {
  Family family = kGemma4;
  family.architecture = "Gemma4UnifiedForCausalLM";
  family.model_type = "gemma4_unified_text";
  // GGUF files do not tell the classes apart.
  family.shown_architecture = "Gemma4ForCausalLM";
  family.default_sizes = &kGemma4UnifiedSizes;
  family.sliding_window = 1024;
  family.own_fields = kGemma4UnifiedFields;
  return family;
}

}  // namespace cria
