#pragma once

// Qwen3-Next, Qwen3.5 and their mixtures, whose layers have linear attention or attend: rows of
// kFamilies, whose fields hf_families.h explains.

#include <array>
#include <string_view>

#include "converter/hugging_face/hf_families.h"

namespace cria {

inline constexpr std::array<std::string_view, 2> kQwen35Fields = {"partial_rotary_factor",
                                                                  "mrope_section"};
inline constexpr std::array<std::string_view, 3> kQwen35MoeFields = {
    "partial_rotary_factor", "mrope_section", "num_experts"};
inline constexpr std::array<std::string_view, 2> kQwen3NextFields = {"partial_rotary_factor",
                                                                     "num_experts"};
inline constexpr std::array<std::string_view, 15> kQwen35NeverNull = {"hidden_size",
                                                                      "intermediate_size",
                                                                      "num_hidden_layers",
                                                                      "num_attention_heads",
                                                                      "vocab_size",
                                                                      "max_position_embeddings",
                                                                      "num_key_value_heads",
                                                                      "head_dim",
                                                                      "attention_bias",
                                                                      "full_attention_interval",
                                                                      "linear_conv_kernel_dim",
                                                                      "linear_key_head_dim",
                                                                      "linear_value_head_dim",
                                                                      "linear_num_key_heads",
                                                                      "linear_num_value_heads"};
inline constexpr std::array<std::string_view, 21> kQwen3NextNeverNull = {
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "vocab_size",
    "max_position_embeddings",
    "num_key_value_heads",
    "head_dim",
    "attention_bias",
    "full_attention_interval",
    "linear_conv_kernel_dim",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "norm_topk_prob",
    "decoder_sparse_step"};
inline constexpr ExpertFields kQwen3NextExperts = {.num_experts = "num_experts",
                                                   .num_experts_alias = {},
                                                   .default_num_experts = 512,
                                                   .default_num_experts_per_tok = 10,
                                                   .default_moe_intermediate_size = 512,
                                                   .has_norm_field = true,
                                                   .default_norm = true,
                                                   .shared_size = "shared_expert_intermediate_size",
                                                   .default_shared_size = 512,
                                                   .has_shared_gate = true,
                                                   .has_dense_layers = true};
inline constexpr ExpertFields kQwen35Experts = {.num_experts = "num_experts",
                                                .num_experts_alias = {},
                                                .default_num_experts = 256,
                                                .default_num_experts_per_tok = 8,
                                                .default_moe_intermediate_size = 512,
                                                .shared_size = "shared_expert_intermediate_size",
                                                .default_shared_size = 512,
                                                .has_shared_gate = true};
inline constexpr DefaultSizes kQwen3NextSizes = {.hidden_size = 2048,
                                                 .intermediate_size = 5632,
                                                 .num_hidden_layers = 48,
                                                 .num_attention_heads = 16,
                                                 .vocab_size = 151936,
                                                 .max_position_embeddings = 32768};
inline constexpr DefaultSizes kQwen35Sizes = {.hidden_size = 4096,
                                              .intermediate_size = 12288,
                                              .num_hidden_layers = 32,
                                              .num_attention_heads = 16,
                                              .vocab_size = 248320,
                                              .max_position_embeddings = 32768};
// The class has no dense feed-forward, whose width is not used.
inline constexpr DefaultSizes kQwen35MoeSizes = {.hidden_size = 2048,
                                                 .intermediate_size = 512,
                                                 .num_hidden_layers = 40,
                                                 .num_attention_heads = 16,
                                                 .vocab_size = 248320,
                                                 .max_position_embeddings = 32768};

inline constexpr Family kQwen3Next = {.architecture = "Qwen3NextForCausalLM",
                                      .model_type = "qwen3_next",
                                      .default_sizes = &kQwen3NextSizes,
                                      .num_key_value_heads = 2,
                                      .head_dim = 256,
                                      .qk_norm = true,
                                      .rope_fields = RopeFields::kPartial,
                                      .partial_rotary_factor = 0.25,
                                      .multipliers = Multipliers::kNormsPlusOne,
                                      .experts = &kQwen3NextExperts,
                                      .linear_attention = true,
                                      .own_fields = kQwen3NextFields,
                                      .never_null = kQwen3NextNeverNull};

constexpr Family Qwen35() {
  Family family = kQwen3Next;
  family.architecture = "Qwen3_5ForCausalLM";
  family.model_type = "qwen3_5_text";
  family.default_sizes = &kQwen35Sizes;
  family.num_key_value_heads = 4;
  family.experts = nullptr;
  family.own_fields = kQwen35Fields;
  family.never_null = kQwen35NeverNull;
  return family;
}

constexpr Family Qwen35Moe() {
  Family family = kQwen3Next;
  family.architecture = "Qwen3_5MoeForCausalLM";
  family.model_type = "qwen3_5_moe_text";
  family.default_sizes = &kQwen35MoeSizes;
  family.experts = &kQwen35Experts;
  family.own_fields = kQwen35MoeFields;
  return family;
}

}  // namespace cria
