#pragma once

#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "model/config.h"

namespace cria {

// Every field of ModelConfig, LayerKind and RopeScaling is listed here once: these tables are used
// to read and write model files, to check bounds, for required_features and for `cria info`.
//
// The order is that of the tables in schema/model.fbs: a field's index is its number there.
template <typename OwnerType, typename Type>
struct ConfigField {
  using Owner = OwnerType;
  using Value = Type;

  std::string_view name;  // As in the schema and, where it is there, in config.json.
  Type OwnerType::* member;
  // Bounds of an integer or enumeration. Other conditions are checked in ValidateConfig.
  uint32_t min = 0;
  uint32_t max = UINT32_MAX;
  bool must_be_positive = false;  // For a real number; any must be finite, and not negative.
  // Whether the field changes the mathematics: if it is not 0, false or a list of one kind,
  // required_features names it.
  bool is_feature = false;
  // For a field of RopeScaling: the types that use it, as RopeTypes() returns them.
  unsigned rope_types = 0;
  // The value of the field in a file that does not have it.
  float absent = 0.0f;
  // Whether files do not have the field if it is 0 or false. It is younger than others, and models
  // that do not need it keep the digest that they had before.
  bool is_omitted_if_zero = false;
};

template <std::same_as<RopeScaling::Type>... Types>
constexpr unsigned RopeTypes(Types... types) {
  return ((1u << static_cast<unsigned>(types)) | ...);
}
constexpr bool IsOfType(unsigned rope_types, RopeScaling::Type type) {
  return (rope_types >> static_cast<unsigned>(type) & 1) != 0;
}

inline constexpr uint32_t kMaxPositions = 1u << 24;
inline constexpr uint32_t kMaxExperts = 1024;
inline constexpr uint32_t kMaxConvTaps = 64;

inline constexpr std::tuple kRopeScalingFields = [] {
  using enum RopeScaling::Type;
  return std::tuple{
      ConfigField{.name = "type", .member = &RopeScaling::type},
      ConfigField{.name = "factor",
                  .member = &RopeScaling::factor,
                  .must_be_positive = true,
                  .rope_types = RopeTypes(kLinear, kLlama3, kDynamic, kYarn, kProportional)},
      ConfigField{.name = "low_freq_factor",
                  .member = &RopeScaling::low_freq_factor,
                  .must_be_positive = true,
                  .rope_types = RopeTypes(kLlama3)},
      ConfigField{.name = "high_freq_factor",
                  .member = &RopeScaling::high_freq_factor,
                  .must_be_positive = true,
                  .rope_types = RopeTypes(kLlama3)},
      ConfigField{.name = "original_max_position_embeddings",
                  .member = &RopeScaling::original_max_position_embeddings,
                  .min = 1,
                  .max = kMaxPositions,
                  .rope_types = RopeTypes(kLlama3, kYarn, kLongrope)},
      ConfigField{.name = "attention_factor",
                  .member = &RopeScaling::attention_factor,
                  .must_be_positive = true,
                  .rope_types = RopeTypes(kYarn, kLongrope),
                  .absent = 1.0f},
      ConfigField{.name = "beta_fast",
                  .member = &RopeScaling::beta_fast,
                  .must_be_positive = true,
                  .rope_types = RopeTypes(kYarn),
                  .absent = 32.0f},
      ConfigField{.name = "beta_slow",
                  .member = &RopeScaling::beta_slow,
                  .must_be_positive = true,
                  .rope_types = RopeTypes(kYarn),
                  .absent = 1.0f},
      ConfigField{.name = "truncate",
                  .member = &RopeScaling::truncate,
                  .rope_types = RopeTypes(kYarn),
                  .absent = 1.0f},
      ConfigField{.name = "short_factor",
                  .member = &RopeScaling::short_factor,
                  .rope_types = RopeTypes(kLongrope)},
      ConfigField{.name = "long_factor",
                  .member = &RopeScaling::long_factor,
                  .rope_types = RopeTypes(kLongrope)},
      ConfigField{.name = "partial_rotary_factor",
                  .member = &RopeScaling::partial_rotary_factor,
                  .must_be_positive = true,
                  .rope_types = RopeTypes(kProportional),
                  .is_omitted_if_zero = true},
  };
}();

inline constexpr ConfigField kSlidingWindowField = {.name = "sliding_window",
                                                    .member = &LayerKind::sliding_window,
                                                    .max = kMaxPositions,
                                                    .is_feature = true};
inline constexpr ConfigField kRopeThetaField = {
    .name = "rope_theta", .member = &LayerKind::rope_theta, .must_be_positive = true};
inline constexpr ConfigField kRopeScalingField = {.name = "rope_scaling",
                                                  .member = &LayerKind::rope_scaling};

inline constexpr ConfigField kNoRopeField = {.name = "no_rope",
                                             .member = &LayerKind::no_rope,
                                             .is_feature = true,
                                             .is_omitted_if_zero = true};
inline constexpr ConfigField kDenseMlpField = {.name = "dense_mlp",
                                               .member = &LayerKind::dense_mlp,
                                               .is_feature = true,
                                               .is_omitted_if_zero = true};
inline constexpr ConfigField kShortConvField = {.name = "short_conv",
                                                .member = &LayerKind::short_conv,
                                                .is_feature = true,
                                                .is_omitted_if_zero = true};
inline constexpr ConfigField kLinearAttentionField = {.name = "linear_attention",
                                                      .member = &LayerKind::linear_attention,
                                                      .is_feature = true,
                                                      .is_omitted_if_zero = true};

inline constexpr ConfigField kGlobalHeadDimField = {.name = "global_head_dim",
                                                    .member = &LayerKind::global_head_dim,
                                                    .max = kMaxHeadDim,
                                                    .is_feature = true,
                                                    .is_omitted_if_zero = true};
inline constexpr ConfigField kGlobalKeyValueHeadsField = {
    .name = "num_global_key_value_heads",
    .member = &LayerKind::num_global_key_value_heads,
    .max = 1024,
    .is_feature = true,
    .is_omitted_if_zero = true};
inline constexpr ConfigField kKvSharedLayerField = {.name = "kv_shared_layer",
                                                    .member = &LayerKind::kv_shared_layer,
                                                    .max = kMaxHiddenLayers,
                                                    .is_feature = true,
                                                    .is_omitted_if_zero = true};
inline constexpr ConfigField kDoubleWideMlpField = {.name = "use_double_wide_mlp",
                                                    .member = &LayerKind::use_double_wide_mlp,
                                                    .is_feature = true,
                                                    .is_omitted_if_zero = true};
inline constexpr ConfigField kMambaField = {
    .name = "mamba", .member = &LayerKind::mamba, .is_feature = true, .is_omitted_if_zero = true};

inline constexpr std::tuple kLayerKindFields = {
    kSlidingWindowField,   kRopeThetaField,     kRopeScalingField,
    kNoRopeField,          kDenseMlpField,      kShortConvField,
    kLinearAttentionField, kGlobalHeadDimField, kGlobalKeyValueHeadsField,
    kKvSharedLayerField,   kDoubleWideMlpField, kMambaField};

// Fields of LayerKind here are those of the first kind.
inline constexpr std::tuple kModelConfigFields = {
    ConfigField{.name = "architecture", .member = &ModelConfig::architecture},
    ConfigField{
        .name = "hidden_size", .member = &ModelConfig::hidden_size, .min = 1, .max = 1u << 17},
    ConfigField{.name = "intermediate_size",
                .member = &ModelConfig::intermediate_size,
                .min = 1,
                .max = 1u << 19},
    ConfigField{.name = "num_hidden_layers",
                .member = &ModelConfig::num_hidden_layers,
                .min = 1,
                .max = kMaxHiddenLayers},
    ConfigField{.name = "num_attention_heads",
                .member = &ModelConfig::num_attention_heads,
                .min = 1,
                .max = 1024},
    ConfigField{.name = "num_key_value_heads",
                .member = &ModelConfig::num_key_value_heads,
                .min = 1,
                .max = 1024},
    ConfigField{.name = "head_dim", .member = &ModelConfig::head_dim, .min = 2, .max = kMaxHeadDim},
    ConfigField{
        .name = "vocab_size", .member = &ModelConfig::vocab_size, .min = 1, .max = 1u << 22},
    ConfigField{.name = "max_position_embeddings",
                .member = &ModelConfig::max_position_embeddings,
                .min = 1,
                .max = kMaxPositions},
    ConfigField{
        .name = "rms_norm_eps", .member = &ModelConfig::rms_norm_eps, .must_be_positive = true},
    kRopeThetaField,
    kRopeScalingField,
    ConfigField{.name = "tie_word_embeddings", .member = &ModelConfig::tie_word_embeddings},
    kSlidingWindowField,
    ConfigField{.name = "qkv_bias", .member = &ModelConfig::qkv_bias, .is_feature = true},
    ConfigField{.name = "o_bias", .member = &ModelConfig::o_bias, .is_feature = true},
    ConfigField{.name = "mlp_bias", .member = &ModelConfig::mlp_bias, .is_feature = true},
    ConfigField{.name = "qk_norm", .member = &ModelConfig::qk_norm, .is_feature = true},
    ConfigField{.name = "layer_kinds", .member = &ModelConfig::layer_kinds, .is_feature = true},
    ConfigField{.name = "kind_of_layer", .member = &ModelConfig::kind_of_layer},
    ConfigField{.name = "rotated_residual",
                .member = &ModelConfig::rotated_residual,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "hidden_act",
                .member = &ModelConfig::hidden_act,
                .max = uint32_t{static_cast<uint8_t>(HiddenAct::kXielu)},
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "norm_placement",
                .member = &ModelConfig::norm_placement,
                .max = uint32_t{static_cast<uint8_t>(NormPlacement::kBeforeAndAfter)},
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "attn_logit_softcapping",
                .member = &ModelConfig::attn_logit_softcapping,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "final_logit_softcapping",
                .member = &ModelConfig::final_logit_softcapping,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "rotary_dim",
                .member = &ModelConfig::rotary_dim,
                .max = kMaxHeadDim,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "joint_qk_norm",
                .member = &ModelConfig::joint_qk_norm,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "num_experts",
                .member = &ModelConfig::num_experts,
                .max = kMaxExperts,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "num_experts_per_tok",
                .member = &ModelConfig::num_experts_per_tok,
                .max = kMaxExperts,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "moe_intermediate_size",
                .member = &ModelConfig::moe_intermediate_size,
                .max = 1u << 19,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "norm_topk_prob",
                .member = &ModelConfig::norm_topk_prob,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "shared_expert_intermediate_size",
                .member = &ModelConfig::shared_expert_intermediate_size,
                .max = 1u << 19,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "shared_expert_gate",
                .member = &ModelConfig::shared_expert_gate,
                .is_feature = true,
                .is_omitted_if_zero = true},
    kNoRopeField,
    kDenseMlpField,
    kShortConvField,
    ConfigField{.name = "conv_L_cache",
                .member = &ModelConfig::conv_L_cache,
                .max = kMaxConvTaps,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "conv_bias",
                .member = &ModelConfig::conv_bias,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "scoring_func",
                .member = &ModelConfig::scoring_func,
                .max = uint32_t{static_cast<uint8_t>(ScoringFunc::kSigmoid)},
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "use_expert_bias",
                .member = &ModelConfig::use_expert_bias,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "use_attention_gate",
                .member = &ModelConfig::use_attention_gate,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "attn_output_gate",
                .member = &ModelConfig::attn_output_gate,
                .is_feature = true,
                .is_omitted_if_zero = true},
    kLinearAttentionField,
    ConfigField{.name = "linear_conv_kernel_dim",
                .member = &ModelConfig::linear_conv_kernel_dim,
                .max = kMaxConvTaps,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "linear_key_head_dim",
                .member = &ModelConfig::linear_key_head_dim,
                .max = kMaxLinearKeyHeadDim,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "linear_value_head_dim",
                .member = &ModelConfig::linear_value_head_dim,
                .max = kMaxHeadDim,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "linear_num_key_heads",
                .member = &ModelConfig::linear_num_key_heads,
                .max = 1024,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "linear_num_value_heads",
                .member = &ModelConfig::linear_num_value_heads,
                .max = 1024,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "linear_tiled_value_heads",
                .member = &ModelConfig::linear_tiled_value_heads,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "llama_4_scaling_beta",
                .member = &ModelConfig::llama_4_scaling_beta,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "llama_4_scaling_positions",
                .member = &ModelConfig::llama_4_scaling_positions,
                .max = kMaxPositions,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "qk_norm_after_rope",
                .member = &ModelConfig::qk_norm_after_rope,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "ungated_mlp",
                .member = &ModelConfig::ungated_mlp,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "xielu",
                .member = &ModelConfig::xielu,
                .is_feature = true,
                .is_omitted_if_zero = true},
    kGlobalHeadDimField,
    kGlobalKeyValueHeadsField,
    kKvSharedLayerField,
    kDoubleWideMlpField,
    ConfigField{.name = "v_norm",
                .member = &ModelConfig::v_norm,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "hidden_size_per_layer_input",
                .member = &ModelConfig::hidden_size_per_layer_input,
                .max = 1u << 16,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "layer_scalar",
                .member = &ModelConfig::layer_scalar,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "enable_moe_block",
                .member = &ModelConfig::enable_moe_block,
                .is_feature = true,
                .is_omitted_if_zero = true},
    kMambaField,
    ConfigField{.name = "mamba_d_conv",
                .member = &ModelConfig::mamba_d_conv,
                .max = kMaxConvTaps,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "mamba_d_state",
                .member = &ModelConfig::mamba_d_state,
                .max = kMaxMambaStateDim,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "mamba_d_head",
                .member = &ModelConfig::mamba_d_head,
                .max = kMaxHeadDim,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "mamba_n_heads",
                .member = &ModelConfig::mamba_n_heads,
                .max = 1024,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "mamba_n_groups",
                .member = &ModelConfig::mamba_n_groups,
                .max = 1024,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "mamba_conv_bias",
                .member = &ModelConfig::mamba_conv_bias,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "mamba_proj_bias",
                .member = &ModelConfig::mamba_proj_bias,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "attn_sinks",
                .member = &ModelConfig::attn_sinks,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "router_bias",
                .member = &ModelConfig::router_bias,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "experts_bias",
                .member = &ModelConfig::experts_bias,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "swiglu_alpha",
                .member = &ModelConfig::swiglu_alpha,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "swiglu_limit",
                .member = &ModelConfig::swiglu_limit,
                .is_feature = true,
                .is_omitted_if_zero = true},
    ConfigField{.name = "mtp_num_hidden_layers",
                .member = &ModelConfig::mtp_num_hidden_layers,
                .max = 1,
                .is_feature = true,
                .is_omitted_if_zero = true},
};

// The field's value in `owner`, which has the table that the field is from.
template <typename Field, typename Owner>
constexpr auto& ValueOf(const Field& field, Owner& owner) {
  if constexpr (std::same_as<typename Field::Owner, std::remove_const_t<Owner>>) {
    return owner.*field.member;
  } else {
    return owner.layer_kinds.front().*field.member;
  }
}

// Calls `visit(field)` for every field of one of these tables.
template <typename Fields, typename Visit>
constexpr void ForEachField(const Fields& fields, const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, fields);
}

}  // namespace cria
