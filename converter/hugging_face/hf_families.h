#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Which projections of attention have biases.
enum class AttentionBias : uint8_t {
  kNone,
  kQkv,            // Queries, keys and values, whatever attention_bias says.
  kByField,        // All or none, as attention_bias says.
  kByFieldOrTrue,  // The same; if it is absent, they have them.
  kByQkvField,     // Queries, keys and values, as qkv_bias says; if it is absent, they have them.
  // Biases are there by attention_bias; those of outputs by the family's own field, if it has one.
  kQkvByField,
  kByUseBias,  // All or none, those of the feed-forward included, as use_bias says.
};

// Which fields give the window of attention, and to which layers. Except for kIgnored and kAll,
// layer_types says which layers have it, if it is given.
enum class Window : uint8_t {
  kIgnored,            // There is no window, whatever sliding_window and layer_types say.
  kRefused,            // There is no window, and fields that ask for one are refused.
  kSlidingWindow,      // sliding_window; in all layers.
  kAll,                // The same, but layer_types is refused.
  kUseSlidingWindow,   // use_sliding_window switches it on, in layers from max_window_layers on.
  kLayersWithoutRope,  // use_sliding_window switches it on, in layers without rope.
  kPattern,            // All layers but every n-th.
};

// Where a configuration has the parameters of rope.
enum class RopeFields : uint8_t {
  kSharedOrByLayerType,  // For all layers, or an object for each type of layers.
  kShared,               // For all layers.
  kGemma3,               // An object for each type of layers. The older form has rope_scaling for
                         // layers without a window and rope_local_base_freq for the others.
  kPhi3,                 // For all layers, with a partial_rotary_factor.
  kLfm3,     // An object for each type of layers, which may be of the type proportional.
  kGemma4,   // The same, with other defaults and fewer types.
  kOlmo3,    // As Gemma 3, but the older form has no field for the base of layers with a window.
  kPartial,  // For all layers, with a partial_rotary_factor.
};

// Multipliers that have fields, or that the family always has; see WeightFolding.
enum class Multipliers : uint8_t {
  kNone,
  kGemma,  // The embedding by sqrt(hidden_size), norms by one more than their weights.
  kGemmaWithScoreField,  // The same, and query_pre_attn_scalar for scores.
  kNormsPlusOne,         // Norms by one more than their weights.
  kGemma4,               // The embedding by sqrt(hidden_size); scores are not scaled.
  kGranite,              // embedding_, attention_ and residual_multiplier, and logits_scaling.
};

// Values of absent fields of sizes.
struct DefaultSizes {
  uint32_t hidden_size;
  uint32_t intermediate_size;
  uint32_t num_hidden_layers;
  uint32_t num_attention_heads;
  uint32_t vocab_size;
  uint32_t max_position_embeddings;
};

// The fields of a mixture of experts, and the values of absent ones.
struct ExpertFields {
  std::string_view num_experts;  // The field; the other name of it means the same.
  std::string_view num_experts_alias;
  uint32_t default_num_experts;
  uint32_t default_num_experts_per_tok;
  // 0: the experts are as wide as intermediate_size says.
  uint32_t default_moe_intermediate_size = 0;
  // Whether the field norm_topk_prob counts; otherwise, the weights always have the sum 1.
  bool has_norm_field = false;
  bool default_norm = false;          // The value of an absent norm_topk_prob.
  std::string_view shared_size = {};  // The field with the width of the shared expert.
  uint32_t default_shared_size = 0;
  bool has_shared_gate = false;
  bool has_dense_layers = false;  // As mlp_only_layers and decoder_sparse_step say.
  // The first layers are dense, as many as num_dense_layers says; scores are sigmoids, and there
  // are the fields use_expert_bias and routed_scaling_factor.
  bool is_lfm2 = false;
  // Router and experts have biases, attention has sinks, and there are the fields swiglu_alpha and
  // swiglu_limit.
  bool is_gpt_oss = false;
};

// The fields of a family with short convolutions.
struct ShortConvFields {
  uint32_t default_conv_L_cache;
  // Whether block_ff_dim and other fields give the width of the feed-forward, and full_attn_idxs
  // the layers that attend if there are no layer_types.
  bool has_block_fields = false;
  bool has_tie_embedding = false;  // Another name of tie_word_embeddings.
  // Layers may have windows, and without layer_types the class decides; there are the fields
  // use_sandwich_norm and use_attention_gate.
  bool is_lfm3 = false;
};

// A module of a layer, "shared_mlp.output_linear", and the name that it has in a Llama.
struct LayerModule {
  std::string_view name;
  std::string_view llama_name;
};

// How transformers' class for an architecture interprets the fields: which of them it uses, and the
// defaults of absent ones.
struct Family {
  std::string_view architecture;
  std::string_view model_type;
  // The name in the model file, if it is another; GGUF files do not tell these architectures apart.
  std::string_view shown_architecture = {};
  // The object with the fields, if they are not at the top level.
  std::string_view nested_in = {};
  std::string_view nested_model_type = {};  // This object's.
  // Whether the head is tied if neither this object nor the one around it says so.
  bool outer_tie_word_embeddings = false;
  const DefaultSizes* default_sizes = nullptr;       // Absent sizes are refused if there are none.
  std::optional<uint32_t> num_key_value_heads = {};  // Default; absent: num_attention_heads.
  std::optional<uint32_t> head_dim = {};  // Default; absent: hidden_size / num_attention_heads.
  std::string_view intermediate_size_field = "intermediate_size";
  std::string_view rms_norm_eps_field = "rms_norm_eps";
  float rms_norm_eps = 1e-6f;
  bool tie_word_embeddings = false;
  AttentionBias attention_bias = AttentionBias::kNone;
  std::string_view output_bias_field = {};  // With kQkvByField.
  bool uses_mlp_bias = false;
  bool qk_norm = false;
  bool qk_norm_after_rope = false;
  bool joint_qk_norm = false;
  NormPlacement norm_placement = NormPlacement::kBefore;
  std::string_view activation_field = "hidden_act";
  std::string_view activation = "silu";
  bool has_gate = true;  // The feed-forward has one; otherwise no other activation is known.
  Window window = Window::kIgnored;
  uint32_t sliding_window = 0;          // Default.
  uint32_t sliding_window_pattern = 0;  // Default of n, for kPattern.
  bool refuses_window_of_0 = false;     // Because it is another than none, which null is.
  // Layers without a window have no rope in a model that has windows.
  bool only_windows_have_rope = false;
  RopeFields rope_fields = RopeFields::kShared;
  float rope_theta = 10000.0f;
  double partial_rotary_factor = 1.0;  // Default, with kPartial.
  bool has_interleaved_rope = false;   // Channels 2 * i and 2 * i + 1 are rotated together.
  Multipliers multipliers = Multipliers::kNone;
  std::optional<float> attn_logit_softcapping = {};  // Default, if it is an own field.
  std::optional<float> final_logit_softcapping = {};
  // Parameters of rope in place of absent ones, as JSON. Then a rope_theta outside them is not
  // used.
  std::string_view default_rope_parameters = {};
  // With the type dynamic, alpha makes the base larger, for all lengths of text.
  bool has_ntk_alpha = false;
  bool has_query_scaling = false;      // llama_4_scaling_beta, among the parameters of rope.
  bool has_fused_projections = false;  // qkv_proj and gate_up_proj.
  // Whether layers have rope only if position_embedding_type is "rope".
  bool has_position_embedding_type = false;
  std::span<const LayerModule> layer_modules = {};  // With other names than a Llama's.
  const ExpertFields* experts = nullptr;            // Null: there are none.
  const Family* without_experts = nullptr;  // What the family is with 0 experts, if it may be.
  // Null: there are none. Otherwise tensors have the names that RenameLfm2Tensors knows, too.
  const ShortConvFields* short_conv = nullptr;
  // Layers with linear attention, as layer_types or full_attention_interval say, and with gates of
  // the output in the others.
  bool linear_attention = false;
  // The fields of hf_gemma4.h.
  bool is_gemma4 = false;
  // Layers with Mamba-2, as layer_types says, whose older name is layers_block_type; all, if
  // neither is there.
  bool mamba = false;
  // Fields that are used, although they are refused for other families.
  std::span<const std::string_view> own_fields = {};
  // Fields for which transformers knows no meaning of null, in addition to those of all families.
  std::span<const std::string_view> never_null = {};

  bool Uses(std::string_view field) const;
};

// A model that sees pictures, too, and has a text model in it that is of one of the families.
struct VisionModel {
  std::string_view architecture;
  std::string_view model_type;
  std::string_view text_model_type;  // If the text model does not say it.
  bool tie_word_embeddings;
};

// All families; text models that only one model around them has are families of their own.
std::span<const Family> HfFamilies();
std::span<const VisionModel> VisionModels();

// The family that architectures or model_type names. If both are given, they must agree:
// transformers uses model_type, other programs use architectures, and the families interpret fields
// differently.
//
// For models that see pictures, too, it is that of the text model in them, with what is known of
// the model around it.
Result<Family> ReadHfFamily(const JsonFields& fields);

}  // namespace cria
