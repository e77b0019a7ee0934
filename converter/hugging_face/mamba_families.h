#pragma once

// Granite 4.0, whose layers have Mamba-2 or attend: a row of kFamilies, whose fields hf_families.h
// explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 6> kGraniteHybridFields = {
    "embedding_multiplier", "attention_multiplier", "residual_multiplier",
    "logits_scaling",       "num_experts",          "num_local_experts"};
inline constexpr std::array<std::string_view, 14> kGraniteHybridNeverNull = {
    "embedding_multiplier", "attention_multiplier", "residual_multiplier",
    "logits_scaling",       "num_local_experts",    "shared_intermediate_size",
    "mamba_n_heads",        "mamba_n_groups",       "mamba_d_state",
    "mamba_d_head",         "mamba_d_conv",         "mamba_expand",
    "mamba_conv_bias",      "time_step_limit"};
inline constexpr std::array kGraniteHybridModules = {
    LayerModule{"shared_mlp.input_linear", "mlp.gate_up_proj"},
    LayerModule{"shared_mlp.output_linear", "mlp.down_proj"}};
inline constexpr ExpertFields kGraniteHybridExperts = {.num_experts = "num_local_experts",
                                                       .num_experts_alias = {},
                                                       .default_num_experts = 8,
                                                       .default_num_experts_per_tok = 2,
                                                       .shared_size = "shared_intermediate_size",
                                                       .default_shared_size = 1024};

// The shared expert is the whole feed-forward.
inline constexpr Family kDenseGraniteHybrid = {
    .architecture = "GraniteMoeHybridForCausalLM",
    .model_type = "granitemoehybrid",
    .intermediate_size_field = "shared_intermediate_size",
    .attention_bias = AttentionBias::kByField,
    .multipliers = Multipliers::kGranite,
    .has_fused_projections = true,
    .has_position_embedding_type = true,
    .layer_modules = kGraniteHybridModules,
    .mamba = true,
    .own_fields = kGraniteHybridFields,
    .never_null = kGraniteHybridNeverNull};

inline constexpr Family kGraniteHybrid = {.architecture = "GraniteMoeHybridForCausalLM",
                                          .model_type = "granitemoehybrid",
                                          .attention_bias = AttentionBias::kByField,
                                          .multipliers = Multipliers::kGranite,
                                          .has_position_embedding_type = true,
                                          .experts = &kGraniteHybridExperts,
                                          .without_experts = &kDenseGraniteHybrid,
                                          .mamba = true,
                                          .own_fields = kGraniteHybridFields,
                                          .never_null = kGraniteHybridNeverNull};

}  // namespace cria
