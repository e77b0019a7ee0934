#pragma once

// Mixtures of experts whose layers are those of Mistral, Qwen and OLMo: rows of kFamilies, whose
// fields hf_families.h explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 2> kExpertCounts = {"num_experts",
                                                                  "num_local_experts"};
inline constexpr std::array<std::string_view, 3> kQwen2MoeFields = {
    "num_experts", "num_local_experts", "qkv_bias"};

inline constexpr ExpertFields kMixtralExperts = {.num_experts = "num_local_experts",
                                                 .num_experts_alias = "num_experts",
                                                 .default_num_experts = 8,
                                                 .default_num_experts_per_tok = 2};
inline constexpr ExpertFields kQwen2Experts = {.num_experts = "num_experts",
                                               .num_experts_alias = {},
                                               .default_num_experts = 60,
                                               .default_num_experts_per_tok = 4,
                                               .default_moe_intermediate_size = 1408,
                                               .has_norm_field = true,
                                               .shared_size = "shared_expert_intermediate_size",
                                               .default_shared_size = 5632,
                                               .has_shared_gate = true,
                                               .has_dense_layers = true};
inline constexpr ExpertFields kQwen3Experts = {.num_experts = "num_experts",
                                               .num_experts_alias = "num_local_experts",
                                               .default_num_experts = 128,
                                               .default_num_experts_per_tok = 8,
                                               .default_moe_intermediate_size = 768,
                                               .has_norm_field = true,
                                               .has_dense_layers = true};
inline constexpr ExpertFields kOlmoeExperts = {.num_experts = "num_experts",
                                               .num_experts_alias = "num_local_experts",
                                               .default_num_experts = 64,
                                               .default_num_experts_per_tok = 8,
                                               .has_norm_field = true};

inline constexpr Family kMixtral = {.architecture = "MixtralForCausalLM",
                                    .model_type = "mixtral",
                                    .num_key_value_heads = 8,
                                    .rms_norm_eps = 1e-5f,
                                    .window = Window::kAll,
                                    .rope_theta = 1000000.0f,
                                    .experts = &kMixtralExperts,
                                    .own_fields = kExpertCounts};

inline constexpr Family kQwen2Moe = {.architecture = "Qwen2MoeForCausalLM",
                                     .model_type = "qwen2_moe",
                                     .num_key_value_heads = 16,
                                     .attention_bias = AttentionBias::kByQkvField,
                                     .experts = &kQwen2Experts,
                                     .own_fields = kQwen2MoeFields};

inline constexpr Family kQwen3Moe = {.architecture = "Qwen3MoeForCausalLM",
                                     .model_type = "qwen3_moe",
                                     .num_key_value_heads = 4,
                                     .attention_bias = AttentionBias::kByField,
                                     .qk_norm = true,
                                     .experts = &kQwen3Experts,
                                     .own_fields = kExpertCounts};

inline constexpr Family kOlmoe = {.architecture = "OlmoeForCausalLM",
                                  .model_type = "olmoe",
                                  .rms_norm_eps = 1e-5f,
                                  .attention_bias = AttentionBias::kByField,
                                  .joint_qk_norm = true,
                                  .window = Window::kRefused,
                                  .experts = &kOlmoeExperts,
                                  .own_fields = kExpertCounts};

}  // namespace cria
