#include "converter/hugging_face/hf_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "converter/checkpoint/fold_weights.h"
#include "converter/hugging_face/hf_experts.h"
#include "converter/hugging_face/hf_families.h"
#include "converter/hugging_face/hf_gemma4.h"
#include "converter/hugging_face/hf_layers.h"
#include "converter/hugging_face/hf_linear_attention.h"
#include "converter/hugging_face/hf_mamba.h"
#include "converter/hugging_face/hf_multipliers.h"
#include "converter/hugging_face/hf_short_conv.h"
#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "converter/input/list_names.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxConfigBytes = 16 << 20;

// Fields of related models that change the computation. If they are absent or null, or have this
// truth value or number, the computation is that of families that do not use them; any other value
// is refused.
struct NeutralField {
  std::string_view name;
  std::optional<double> neutral_number;
  bool neutral_bool = false;
};
constexpr std::array kNeutralFields = {
    NeutralField{"qkv_bias", {}},
    NeutralField{"use_bias", {}},
    NeutralField{"use_qk_norm", {}},
    NeutralField{"qk_layernorm", {}},
    NeutralField{"attention_chunk_size", {}},
    NeutralField{"no_rope_layers", {}},
    NeutralField{"no_rope_layer_interval", {}},
    NeutralField{"rope_local_base_freq", {}},
    NeutralField{"sliding_window_pattern", {}},
    NeutralField{"quantization_config", {}},
    NeutralField{"num_local_experts", {}},
    NeutralField{"num_experts", {}},
    NeutralField{"use_expert_bias", {}},
    NeutralField{"routed_scaling_factor", 1.0},
    NeutralField{"partial_rotary_factor", 1.0},
    NeutralField{"rotary_pct", 1.0},
    NeutralField{"logit_scale", 1.0},
    NeutralField{"logits_scaling", 1.0},
    NeutralField{"embedding_multiplier", 1.0},
    NeutralField{"residual_multiplier", 1.0},
    NeutralField{"attention_multiplier", {}},
    NeutralField{"query_pre_attn_scalar", {}},
    NeutralField{"final_logit_softcapping", {}},
    NeutralField{"attn_logit_softcapping", {}},
    NeutralField{"use_bidirectional_attention", {}},
    NeutralField{"clip_qkv", {}},
    NeutralField{"is_causal", {}, true},
    NeutralField{"block_use_swiglu", {}, true},
    NeutralField{"use_pos_enc", {}, true},
};

Status RefuseUnlessNeutral(const JsonFields& fields, const NeutralField& field) {
  const json* value = fields.Find(field.name);
  if (value == nullptr || *value == field.neutral_bool) return {};
  if (field.neutral_number.has_value() && value->is_number() &&
      value->get<double>() == *field.neutral_number) {
    return {};
  }
  return fields.Bad(ErrorCode::kUnsupported, field.name,
                    Format("is {}, which this version does not support", JsonFields::Text(*value)));
}

// Fields that may be absent, but for which transformers knows no meaning of null.
constexpr std::array<std::string_view, 3> kNeverNull = {"tie_word_embeddings", "rms_norm_eps",
                                                        "hidden_act"};

Status RefuseNull(const JsonFields& fields, std::span<const std::string_view> never_null) {
  for (const std::string_view name : never_null) {
    if (!fields.object().contains(name) || fields.Find(name) != nullptr) continue;
    return fields.Bad(ErrorCode::kInvalidFile, name,
                      "is null, which has no meaning here; give its value, or remove the field to "
                      "use the default");
  }
  return {};
}

struct Activation {
  std::string_view name;
  HiddenAct kind;
};
constexpr std::array kActivations = {
    Activation{"silu", HiddenAct::kSilu}, Activation{"gelu", HiddenAct::kGelu},
    Activation{"gelu_pytorch_tanh", HiddenAct::kGeluTanh},
    // Other names of the same.
    Activation{"swish", HiddenAct::kSilu}, Activation{"gelu_new", HiddenAct::kGeluTanh}};

Result<HiddenAct> ReadActivation(const JsonFields& fields, std::string_view name,
                                 const Family& family) {
  CRIA_ASSIGN_OR_RETURN(std::string activation, fields.String(name, family.activation));
  // The first Gemma's files say gelu, but it was trained with the approximation by tanh.
  if (family.multipliers == Multipliers::kGemma && activation == "gelu") {
    activation = family.activation;
  }
  if (!family.has_gate) {
    if (activation == family.activation) {
      return activation == "xielu" ? HiddenAct::kXielu : HiddenAct::kRelu2;
    }
    return fields.Bad(ErrorCode::kUnsupported, name,
                      Format("is \"{}\"; this version supports {} for this architecture",
                             Quotable(activation), family.activation));
  }
  const auto* found = std::ranges::find(kActivations, activation, &Activation::name);
  if (found != kActivations.end()) return found->kind;
  return fields.Bad(ErrorCode::kUnsupported, name,
                    Format("is \"{}\"; this version supports {}", Quotable(activation),
                           ListNames(kActivations, &Activation::name)));
}

// There are two names of the field. Versions of transformers differ in which of them they use for
// Gemma, so both must mean the same.
Status ReadActivations(const JsonFields& fields, const Family& family, ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(config.hidden_act, ReadActivation(fields, family.activation_field, family));
  const std::string_view other =
      family.activation_field == "hidden_act" ? "hidden_activation" : "hidden_act";
  if (fields.Find(other) == nullptr) return {};
  CRIA_ASSIGN_OR_RETURN(const HiddenAct other_act, ReadActivation(fields, other, family));
  if (other_act == config.hidden_act) return {};
  return fields.Bad(ErrorCode::kInvalidFile, other,
                    Format("contradicts {}; remove the wrong one", family.activation_field));
}

// Returns `otherwise`, or nothing if the field is null: null switches the default off, too.
std::optional<uint32_t> UnlessNull(const JsonFields& fields, std::string_view name,
                                   std::optional<uint32_t> otherwise) {
  return fields.object().contains(name) ? std::nullopt : otherwise;
}

// The older name of intermediate_size has precedence in families that know it.
std::string_view UsedName(const JsonFields& fields, const Family& family, std::string_view name) {
  constexpr std::string_view kOlder = "block_ff_dim";
  if (name != "intermediate_size") return name;
  const bool is_used = family.short_conv != nullptr && family.short_conv->has_block_fields &&
                       fields.Find(kOlder) != nullptr;
  return is_used ? kOlder : family.intermediate_size_field;
}

Status ReadSizes(const JsonFields& fields, const Family& family, ModelConfig& config) {
  struct Size {
    std::string_view name;
    uint32_t ModelConfig::* member;
    uint32_t DefaultSizes::* otherwise;
  };
  constexpr std::array kSizeFields = {
      Size{"hidden_size", &ModelConfig::hidden_size, &DefaultSizes::hidden_size},
      Size{"intermediate_size", &ModelConfig::intermediate_size, &DefaultSizes::intermediate_size},
      Size{"num_hidden_layers", &ModelConfig::num_hidden_layers, &DefaultSizes::num_hidden_layers},
      Size{"num_attention_heads", &ModelConfig::num_attention_heads,
           &DefaultSizes::num_attention_heads},
      Size{"vocab_size", &ModelConfig::vocab_size, &DefaultSizes::vocab_size},
      Size{"max_position_embeddings", &ModelConfig::max_position_embeddings,
           &DefaultSizes::max_position_embeddings}};
  for (const Size& size : kSizeFields) {
    std::optional<uint32_t> otherwise;
    if (family.default_sizes != nullptr) otherwise = family.default_sizes->*size.otherwise;
    CRIA_ASSIGN_OR_RETURN(config.*size.member,
                          fields.Integer(UsedName(fields, family, size.name), otherwise));
  }
  CRIA_ASSIGN_OR_RETURN(
      config.num_key_value_heads,
      fields.Integer("num_key_value_heads",
                     UnlessNull(fields, "num_key_value_heads", family.num_key_value_heads)
                         .value_or(config.num_attention_heads)));
  if (fields.Find("head_dim") != nullptr || family.head_dim.has_value()) {
    CRIA_ASSIGN_OR_RETURN(config.head_dim, fields.Integer("head_dim", family.head_dim));
    return {};
  }
  if (config.num_attention_heads == 0 || config.hidden_size % config.num_attention_heads != 0) {
    return fields.Bad(ErrorCode::kInvalidFile, "hidden_size",
                      Format("({}) is not a multiple of num_attention_heads ({}), and head_dim "
                             "is not given",
                             config.hidden_size, config.num_attention_heads));
  }
  config.head_dim = config.hidden_size / config.num_attention_heads;
  return {};
}

// Fails if a field asks for a bias that the family does not have.
Status ReadBiases(const JsonFields& fields, const Family& family, ModelConfig& config) {
  switch (family.attention_bias) {
    case AttentionBias::kNone:
      CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, {"attention_bias", {}}));
      break;
    case AttentionBias::kQkv:
      config.qkv_bias = true;
      break;
    case AttentionBias::kByQkvField: {
      CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, {"attention_bias", {}}));
      CRIA_ASSIGN_OR_RETURN(config.qkv_bias, fields.Bool("qkv_bias", true));
      break;
    }
    case AttentionBias::kQkvByField: {
      CRIA_ASSIGN_OR_RETURN(config.qkv_bias, fields.Bool("attention_bias", true));
      if (family.output_bias_field.empty()) break;
      CRIA_ASSIGN_OR_RETURN(config.o_bias, fields.Bool(family.output_bias_field, false));
      break;
    }
    case AttentionBias::kByUseBias: {
      CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, {"attention_bias", {}}));
      CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, {"mlp_bias", {}}));
      CRIA_ASSIGN_OR_RETURN(const bool has_bias, fields.Bool("use_bias", false));
      config.qkv_bias = config.o_bias = config.mlp_bias = has_bias;
      return {};
    }
    case AttentionBias::kByField:
    case AttentionBias::kByFieldOrTrue: {
      CRIA_ASSIGN_OR_RETURN(
          const bool has_bias,
          fields.Bool("attention_bias", family.attention_bias == AttentionBias::kByFieldOrTrue));
      config.qkv_bias = config.o_bias = has_bias;
      break;
    }
  }
  if (!family.uses_mlp_bias) return RefuseUnlessNeutral(fields, {"mlp_bias", {}});
  CRIA_ASSIGN_OR_RETURN(config.mlp_bias, fields.Bool("mlp_bias", false));
  return {};
}

// The family, or what it is without experts if there are none.
Result<Family> WithItsExperts(const JsonFields& fields, const Family& family) {
  if (family.without_experts == nullptr) return family;
  CRIA_ASSIGN_OR_RETURN(const uint32_t count, fields.Integer(family.experts->num_experts,
                                                             family.experts->default_num_experts));
  return count == 0 ? *family.without_experts : family;
}

// Whether gpt-oss's matrices are in MXFP4, the only way to quantize a checkpoint that is read.
Result<bool> ReadMxfp4(const JsonFields& fields) {
  constexpr std::string_view kName = "quantization_config";
  const json* value = fields.Find(kName);
  if (value == nullptr || !value->is_object() || value->value("quant_method", json()) != "mxfp4") {
    CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, {kName, {}}));
    return false;
  }
  return true;
}

Result<HfModel> ReadFields(const JsonFields& fields, const Family& named) {
  CRIA_ASSIGN_OR_RETURN(const Family family, WithItsExperts(fields, named));
  CRIA_RETURN_IF_ERROR(RefuseNull(fields, kNeverNull));
  CRIA_RETURN_IF_ERROR(RefuseNull(fields, family.never_null));
  for (const NeutralField& field : kNeutralFields) {
    if (!family.Uses(field.name)) CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, field));
  }
  HfModel model = {.has_fused_projections = family.has_fused_projections,
                   .has_lfm2_names = family.short_conv != nullptr,
                   .has_gpt_oss_names = family.experts != nullptr && family.experts->is_gpt_oss,
                   .has_mtp = family.linear_attention,
                   .has_interleaved_rope = family.has_interleaved_rope,
                   .layer_modules = family.layer_modules};
  if (model.has_gpt_oss_names) {
    CRIA_ASSIGN_OR_RETURN(model.has_mxfp4, ReadMxfp4(fields));
  }
  ModelConfig& config = model.config;
  config.architecture =
      family.shown_architecture.empty() ? family.architecture : family.shown_architecture;
  config.qk_norm = family.qk_norm;
  config.qk_norm_after_rope = family.qk_norm_after_rope;
  config.ungated_mlp = !family.has_gate;
  config.joint_qk_norm = family.joint_qk_norm;
  config.norm_placement = family.norm_placement;
  CRIA_RETURN_IF_ERROR(ReadActivations(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadSizes(fields, family, config));
  const size_t num_layers = std::min(config.num_hidden_layers, kMaxHiddenLayers);
  CRIA_ASSIGN_OR_RETURN(config.rms_norm_eps,
                        fields.Number(family.rms_norm_eps_field, family.rms_norm_eps));
  CRIA_ASSIGN_OR_RETURN(config.tie_word_embeddings,
                        fields.Bool("tie_word_embeddings", family.tie_word_embeddings));
  // The class's first numbers; tensors have others.
  for (size_t i = 0; config.hidden_act == HiddenAct::kXielu && i < num_layers; ++i) {
    config.xielu.insert(config.xielu.end(), {0.8f, 0.8f, 0.5f, -1e-6f});
  }
  CRIA_RETURN_IF_ERROR(ReadBiases(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadHfSoftCaps(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadHfShortConv(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadHfLinearAttention(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadHfGemma4(fields, family, config));
  if (family.is_gemma4) {
    CRIA_ASSIGN_OR_RETURN(model.keys_are_values, fields.Bool("attention_k_eq_v", false));
  }
  CRIA_RETURN_IF_ERROR(ReadHfMamba(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadHfExperts(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadHfLayers(fields, family, config));
  CRIA_ASSIGN_OR_RETURN(model.folding, ReadHfMultipliers(fields, family, config));
  MoveAttentionFactor(config, model.folding);
  return model;
}

constexpr std::string_view kTied = "tie_word_embeddings";

// Whether the head is tied is said outside the text model's object. Files without that have it in
// the object, although the class then ties the head where the object says that it is not; but a
// head that is in the file and differs from the embedding is used in any case.
Result<bool> ReadNestedTied(const JsonFields& fields, const JsonFields& text,
                            const Family& family) {
  CRIA_RETURN_IF_ERROR(RefuseNull(fields, {&kTied, 1}));
  const bool is_given = fields.Find(kTied) != nullptr;
  CRIA_ASSIGN_OR_RETURN(const bool is_tied, fields.Bool(kTied, family.outer_tie_word_embeddings));
  CRIA_ASSIGN_OR_RETURN(const bool text_is_tied, text.Bool(kTied, is_tied));
  if (is_tied == text_is_tied || (!is_given && is_tied)) return text_is_tied;
  return text.Bad(ErrorCode::kInvalidFile, kTied,
                  Format("contradicts the {} outside {}; correct the one that is wrong", kTied,
                         family.nested_in));
}

// The text model's fields are in an object of their own. Whether the head is tied is outside it.
Result<HfModel> ReadNested(const JsonFields& fields, const Family& family) {
  const json* nested = fields.Find(family.nested_in);
  if (nested == nullptr || !nested->is_object()) {
    return fields.Bad(ErrorCode::kInvalidFile, family.nested_in,
                      "must be an object with the text model's fields");
  }
  const JsonFields text(*nested, fields.where(), family.nested_in);
  CRIA_ASSIGN_OR_RETURN(const std::string model_type, text.String("model_type"));
  if (!model_type.empty() && model_type != family.nested_model_type) {
    return text.Bad(ErrorCode::kUnsupported, "model_type",
                    Format("is \"{}\", but {} has \"{}\" there", Quotable(model_type),
                           family.architecture, family.nested_model_type));
  }
  CRIA_ASSIGN_OR_RETURN(const bool is_tied, ReadNestedTied(fields, text, family));
  CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, {"quantization_config", {}}));
  CRIA_ASSIGN_OR_RETURN(HfModel model, ReadFields(text, family));
  model.config.tie_word_embeddings = is_tied;
  model.has_vision = true;
  model.may_have_head = fields.Find(kTied) == nullptr && text.Find(kTied) == nullptr;
  return model;
}

}  // namespace

Result<HfModel> ReadHfModel(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const json object, ReadJsonFile(path, kMaxConfigBytes));
  const JsonFields fields(object, path.string());
  CRIA_ASSIGN_OR_RETURN(const Family family, ReadHfFamily(fields));
  CRIA_ASSIGN_OR_RETURN(HfModel model, family.nested_in.empty() ? ReadFields(fields, family)
                                                                : ReadNested(fields, family));
  if (const Status valid = ValidateConfig(model.config); !valid) {
    return Fail(valid.error().code(), Format("{}: {}", path.string(), valid.error().message()));
  }
  return model;
}

}  // namespace cria
