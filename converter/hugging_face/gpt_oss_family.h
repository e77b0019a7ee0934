#pragma once

// gpt-oss: a row of kFamilies, whose fields hf_families.h explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 3> kGptOssFields = {
    "num_experts", "num_local_experts", "quantization_config"};
inline constexpr std::array<std::string_view, 13> kGptOssNeverNull = {
    "hidden_size",         "intermediate_size", "num_hidden_layers",   "num_attention_heads",
    "num_key_value_heads", "head_dim",          "vocab_size",          "max_position_embeddings",
    "attention_bias",      "num_local_experts", "num_experts_per_tok", "swiglu_alpha",
    "swiglu_limit"};
inline constexpr ExpertFields kGptOssExperts = {.num_experts = "num_local_experts",
                                                .num_experts_alias = "num_experts",
                                                .default_num_experts = 128,
                                                .default_num_experts_per_tok = 4,
                                                .is_gpt_oss = true};
inline constexpr DefaultSizes kGptOssSizes = {.hidden_size = 2880,
                                              .intermediate_size = 2880,
                                              .num_hidden_layers = 36,
                                              .num_attention_heads = 64,
                                              .vocab_size = 201088,
                                              .max_position_embeddings = 131072};
inline constexpr std::string_view kGptOssRope =
    R"({"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "truncate": false, "original_max_position_embeddings": 4096})";

inline constexpr Family kGptOss = {.architecture = "GptOssForCausalLM",
                                   .model_type = "gpt_oss",
                                   .default_sizes = &kGptOssSizes,
                                   .num_key_value_heads = 8,
                                   .head_dim = 64,
                                   .rms_norm_eps = 1e-5f,
                                   .attention_bias = AttentionBias::kByFieldOrTrue,
                                   .window = Window::kPattern,
                                   .sliding_window = 128,
                                   .sliding_window_pattern = 2,
                                   .rope_theta = 150000.0f,
                                   .default_rope_parameters = kGptOssRope,
                                   .experts = &kGptOssExperts,
                                   .own_fields = kGptOssFields,
                                   .never_null = kGptOssNeverNull};

}  // namespace cria
