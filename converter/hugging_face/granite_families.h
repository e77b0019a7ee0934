#pragma once

// Granite, without and with experts: rows of kFamilies, whose fields hf_families.h explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 4> kGraniteFields = {
    "embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"};
inline constexpr std::array<std::string_view, 6> kGraniteMoeFields = {
    "embedding_multiplier", "attention_multiplier", "residual_multiplier",
    "logits_scaling",       "num_experts",          "num_local_experts"};

inline constexpr ExpertFields kGraniteExperts = {.num_experts = "num_local_experts",
                                                 .num_experts_alias = {},
                                                 .default_num_experts = 8,
                                                 .default_num_experts_per_tok = 2};
inline constexpr ExpertFields kGraniteSharedExperts = {.num_experts = "num_local_experts",
                                                       .num_experts_alias = {},
                                                       .default_num_experts = 8,
                                                       .default_num_experts_per_tok = 2,
                                                       .shared_size = "shared_intermediate_size"};

inline constexpr Family kGranite = {.architecture = "GraniteForCausalLM",
                                    .model_type = "granite",
                                    .attention_bias = AttentionBias::kByField,
                                    .uses_mlp_bias = true,
                                    .window = Window::kRefused,
                                    .multipliers = Multipliers::kGranite,
                                    .own_fields = kGraniteFields,
                                    .never_null = kGraniteFields};

inline constexpr Family kGraniteMoe = {.architecture = "GraniteMoeForCausalLM",
                                       .model_type = "granitemoe",
                                       .attention_bias = AttentionBias::kByField,
                                       .window = Window::kRefused,
                                       .multipliers = Multipliers::kGranite,
                                       .experts = &kGraniteExperts,
                                       .own_fields = kGraniteMoeFields,
                                       .never_null = kGraniteFields};

inline constexpr Family kGraniteMoeShared = {.architecture = "GraniteMoeSharedForCausalLM",
                                             .model_type = "granitemoeshared",
                                             .attention_bias = AttentionBias::kByField,
                                             .window = Window::kRefused,
                                             .multipliers = Multipliers::kGranite,
                                             .experts = &kGraniteSharedExperts,
                                             .own_fields = kGraniteMoeFields,
                                             .never_null = kGraniteFields};

}  // namespace cria
