#pragma once

// LFM2 and LFM3, whose layers have short convolutions or attend: rows of kFamilies, whose fields
// hf_families.h explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 10> kLfm2NeverNull = {"norm_eps",
                                                                    "block_ff_dim",
                                                                    "block_auto_adjust_ff_dim",
                                                                    "block_ffn_dim_multiplier",
                                                                    "block_multiple_of",
                                                                    "tie_embedding",
                                                                    "conv_L_cache",
                                                                    "conv_bias",
                                                                    "intermediate_size",
                                                                    "num_key_value_heads"};

inline constexpr ExpertFields kLfm2Experts = {.num_experts = "num_experts",
                                              .num_experts_alias = {},
                                              .default_num_experts = 32,
                                              .default_num_experts_per_tok = 4,
                                              .default_moe_intermediate_size = 1792,
                                              .has_norm_field = true,
                                              .default_norm = true,
                                              .is_lfm2 = true};
inline constexpr std::array<std::string_view, 3> kLfm2MoeFields = {"num_experts", "use_expert_bias",
                                                                   "routed_scaling_factor"};
inline constexpr std::array<std::string_view, 10> kLfm2MoeNeverNull = {
    "norm_eps",        "tie_embedding",        "conv_L_cache",        "conv_bias",
    "num_experts",     "norm_topk_prob",       "num_key_value_heads", "num_dense_layers",
    "use_expert_bias", "routed_scaling_factor"};

inline constexpr ShortConvFields kLfm2MoeShortConv = {.default_conv_L_cache = 3,
                                                      .has_tie_embedding = true};
inline constexpr std::array<std::string_view, 7> kLfm3NeverNull = {
    "norm_eps",          "conv_L_cache",       "conv_bias", "num_key_value_heads",
    "use_sandwich_norm", "use_attention_gate", "head_dim"};
inline constexpr ShortConvFields kLfm3ShortConv = {.default_conv_L_cache = 7, .is_lfm3 = true};
inline constexpr ShortConvFields kLfm2ShortConv = {
    .default_conv_L_cache = 3, .has_block_fields = true, .has_tie_embedding = true};

inline constexpr Family kLfm2 = {.architecture = "Lfm2ForCausalLM",
                                 .model_type = "lfm2",
                                 .num_key_value_heads = 8,
                                 .rms_norm_eps_field = "norm_eps",
                                 .rms_norm_eps = 1e-5f,
                                 .tie_word_embeddings = true,
                                 .qk_norm = true,
                                 .rope_theta = 1000000.0f,
                                 .short_conv = &kLfm2ShortConv,
                                 .never_null = kLfm2NeverNull};

inline constexpr Family kLfm2Moe = {.architecture = "Lfm2MoeForCausalLM",
                                    .model_type = "lfm2_moe",
                                    .num_key_value_heads = 8,
                                    .rms_norm_eps_field = "norm_eps",
                                    .rms_norm_eps = 1e-5f,
                                    .tie_word_embeddings = true,
                                    .qk_norm = true,
                                    .rope_theta = 1000000.0f,
                                    .experts = &kLfm2Experts,
                                    .short_conv = &kLfm2MoeShortConv,
                                    .own_fields = kLfm2MoeFields,
                                    .never_null = kLfm2MoeNeverNull};

inline constexpr Family kLfm3 = {.architecture = "Lfm3ForCausalLM",
                                 .model_type = "lfm3",
                                 .num_key_value_heads = 4,
                                 .head_dim = 128,
                                 .rms_norm_eps_field = "norm_eps",
                                 .rms_norm_eps = 1e-5f,
                                 .tie_word_embeddings = true,
                                 .attention_bias = AttentionBias::kByField,
                                 .qk_norm = true,
                                 .window = Window::kSlidingWindow,
                                 .sliding_window = 256,
                                 .rope_fields = RopeFields::kLfm3,
                                 .rope_theta = 1000000.0f,
                                 .short_conv = &kLfm3ShortConv,
                                 .never_null = kLfm3NeverNull};

}  // namespace cria
