#include "converter/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "converter/json_fields.h"
#include "converter/json_file.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr uint64_t kMostConfigBytes = 16 << 20;

// Fields of relatives of Llama that change the mathematics. Absent, null, false, or the number
// given here they mean what Llama does; anything else is refused.
struct NeutralField {
  std::string_view name;
  std::optional<double> neutral_number;
};
constexpr std::array kNeutralFields = {
    NeutralField{"attention_bias", {}},
    NeutralField{"mlp_bias", {}},
    NeutralField{"qkv_bias", {}},
    NeutralField{"use_bias", {}},
    NeutralField{"use_qk_norm", {}},
    NeutralField{"qk_layernorm", {}},
    NeutralField{"attention_chunk_size", {}},
    NeutralField{"no_rope_layers", {}},
    NeutralField{"quantization_config", {}},
    NeutralField{"num_local_experts", {}},
    NeutralField{"num_experts", {}},
    NeutralField{"partial_rotary_factor", 1.0},
    NeutralField{"rotary_pct", 1.0},
    NeutralField{"logit_scale", 1.0},
    NeutralField{"logits_scaling", 1.0},
    NeutralField{"embedding_multiplier", 1.0},
    NeutralField{"residual_multiplier", 1.0},
    NeutralField{"attention_multiplier", {}},
    NeutralField{"final_logit_softcapping", {}},
    NeutralField{"attn_logit_softcapping", {}},
    NeutralField{"clip_qkv", {}},
};

Status RefuseUnlessNeutral(const JsonFields& fields, const NeutralField& field) {
  const json* value = fields.Find(field.name);
  if (value == nullptr || *value == false) return {};
  if (field.neutral_number.has_value() && value->is_number() &&
      value->get<double>() == *field.neutral_number) {
    return {};
  }
  return fields.Bad(
      ErrorCode::kUnsupported, field.name,
      std::format("is {}, which this version does not support", JsonFields::Text(*value)));
}

Result<std::string> ReadArchitecture(const JsonFields& fields) {
  const json* architectures = fields.Find("architectures");
  if (architectures == nullptr) {
    CRIA_ASSIGN_OR_RETURN(const std::string model_type, fields.String("model_type", ""));
    if (model_type == "llama") return std::string("LlamaForCausalLM");
    return fields.Bad(ErrorCode::kNotFound, "architectures",
                      "is missing; it must name the kind of model, such as LlamaForCausalLM");
  }
  if (!architectures->is_array() || architectures->size() != 1 ||
      !architectures->front().is_string()) {
    return fields.Bad(
        ErrorCode::kInvalidFile, "architectures",
        std::format("is {}, but must be a list of one name", JsonFields::Text(*architectures)));
  }
  return architectures->front().get<std::string>();
}

// The object that describes rotary scaling, or null. transformers 5 calls it rope_parameters and
// puts rope_theta into it.
Result<const json*> FindRope(const JsonFields& fields) {
  const json* parameters = fields.Find("rope_parameters");
  const json* scaling = fields.Find("rope_scaling");
  if (parameters != nullptr && scaling != nullptr && *parameters != *scaling) {
    return fields.Bad(ErrorCode::kInvalidFile, "rope_parameters",
                      "and rope_scaling are both given and differ; remove the wrong one");
  }
  const json* rope = parameters != nullptr ? parameters : scaling;
  if (rope != nullptr && !rope->is_object()) {
    return fields.Bad(ErrorCode::kInvalidFile,
                      parameters != nullptr ? "rope_parameters" : "rope_scaling",
                      std::format("is {}, but must be an object", JsonFields::Text(*rope)));
  }
  return rope;
}

Result<RopeScaling> ReadRopeScaling(const JsonFields& rope) {
  // Older checkpoints say "type"; where both are given, transformers heeds "rope_type".
  const std::string_view key = rope.Find("rope_type") != nullptr ? "rope_type" : "type";
  CRIA_ASSIGN_OR_RETURN(const std::string type, rope.String(key, ""));
  RopeScaling scaling;
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3") {
    return rope.Bad(
        ErrorCode::kUnsupported, key,
        std::format("is \"{}\"; this version supports default, linear and llama3", type));
  }
  CRIA_ASSIGN_OR_RETURN(scaling.factor, rope.Number("factor"));
  if (type == "linear") {
    scaling.type = RopeScaling::Type::kLinear;
    return scaling;
  }
  scaling.type = RopeScaling::Type::kLlama3;
  CRIA_ASSIGN_OR_RETURN(scaling.low_freq_factor, rope.Number("low_freq_factor"));
  CRIA_ASSIGN_OR_RETURN(scaling.high_freq_factor, rope.Number("high_freq_factor"));
  CRIA_ASSIGN_OR_RETURN(scaling.original_max_position_embeddings,
                        rope.Integer("original_max_position_embeddings"));
  return scaling;
}

Status ReadRope(const JsonFields& fields, ModelConfig& config) {
  constexpr float kTransformersDefaultTheta = 10000.0f;
  CRIA_ASSIGN_OR_RETURN(config.rope_theta, fields.Number("rope_theta", kTransformersDefaultTheta));
  CRIA_ASSIGN_OR_RETURN(const json* rope, FindRope(fields));
  if (rope == nullptr) return {};
  const JsonFields rope_fields(
      *rope, fields.where(),
      fields.Find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling");
  CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(rope_fields, {"partial_rotary_factor", 1.0}));
  CRIA_ASSIGN_OR_RETURN(config.rope_theta, rope_fields.Number("rope_theta", config.rope_theta));
  CRIA_ASSIGN_OR_RETURN(config.rope_scaling, ReadRopeScaling(rope_fields));
  return {};
}

Status ReadSizes(const JsonFields& fields, ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(config.hidden_size, fields.Integer("hidden_size"));
  CRIA_ASSIGN_OR_RETURN(config.intermediate_size, fields.Integer("intermediate_size"));
  CRIA_ASSIGN_OR_RETURN(config.num_hidden_layers, fields.Integer("num_hidden_layers"));
  CRIA_ASSIGN_OR_RETURN(config.num_attention_heads, fields.Integer("num_attention_heads"));
  CRIA_ASSIGN_OR_RETURN(config.num_key_value_heads,
                        fields.Integer("num_key_value_heads", config.num_attention_heads));
  CRIA_ASSIGN_OR_RETURN(config.vocab_size, fields.Integer("vocab_size"));
  CRIA_ASSIGN_OR_RETURN(config.max_position_embeddings, fields.Integer("max_position_embeddings"));
  if (fields.Find("head_dim") != nullptr) {
    CRIA_ASSIGN_OR_RETURN(config.head_dim, fields.Integer("head_dim"));
    return {};
  }
  if (config.num_attention_heads == 0 || config.hidden_size % config.num_attention_heads != 0) {
    return fields.Bad(
        ErrorCode::kInvalidFile, "hidden_size",
        std::format("({}) is not a multiple of num_attention_heads ({}), and head_dim "
                    "is not given",
                    config.hidden_size, config.num_attention_heads));
  }
  config.head_dim = config.hidden_size / config.num_attention_heads;
  return {};
}

// Whether layer_types says that all layers have a window; not absent.
Result<bool> AllLayersSlide(const JsonFields& fields, uint32_t num_hidden_layers) {
  CRIA_ASSIGN_OR_RETURN(const json* types, fields.Array("layer_types"));
  if (types->size() != num_hidden_layers || types->empty()) {
    return fields.Bad(ErrorCode::kInvalidFile, "layer_types",
                      std::format("has {} entries, but num_hidden_layers is {}", types->size(),
                                  num_hidden_layers));
  }
  const json& first = types->front();
  const bool is_known = first == "sliding_attention" || first == "full_attention";
  if (!is_known || std::ranges::any_of(*types, [&](const json& type) { return type != first; })) {
    return fields.Bad(ErrorCode::kUnsupported, "layer_types",
                      std::format("is {}; this version supports layers that all are "
                                  "full_attention or all are sliding_attention",
                                  JsonFields::Text(*types)));
  }
  return first == "sliding_attention";
}

// The window of all layers, 0 for none; whoever names one, of whatever architecture, means it.
// As in transformers' configurations that have one, use_sliding_window turns it off, and
// layer_types, or in its place max_window_layers, which counts the layers at the bottom that have
// none, says where it applies.
Result<uint32_t> ReadSlidingWindow(const JsonFields& fields, const ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(const bool is_used, fields.Bool("use_sliding_window", true));
  uint32_t window = 0;
  if (is_used) {
    CRIA_ASSIGN_OR_RETURN(window, fields.Integer("sliding_window", 0));
  }
  if (fields.Find("layer_types") != nullptr) {
    CRIA_ASSIGN_OR_RETURN(const bool all_slide, AllLayersSlide(fields, config.num_hidden_layers));
    if (all_slide && window == 0) {
      return fields.Bad(ErrorCode::kInvalidFile, "layer_types",
                        "is sliding_attention, but sliding_window gives no window");
    }
    if (!all_slide) window = 0;
  } else if (window != 0) {
    // Where use_sliding_window is given, transformers' default differs from model to model.
    const std::optional<uint32_t> otherwise =
        fields.Find("use_sliding_window") == nullptr ? std::optional<uint32_t>(0) : std::nullopt;
    CRIA_ASSIGN_OR_RETURN(const uint32_t full_layers,
                          fields.Integer("max_window_layers", otherwise));
    if (full_layers >= config.num_hidden_layers) {
      window = 0;
    } else if (full_layers != 0) {
      return fields.Bad(ErrorCode::kUnsupported, "max_window_layers",
                        std::format("is {} of {} layers; this version supports a window in all "
                                    "layers or in none",
                                    full_layers, config.num_hidden_layers));
    }
  }
  // No context is longer, so that such a window hides nothing.
  return window < config.max_position_embeddings ? window : 0;
}

}  // namespace

Result<ModelConfig> ReadHfConfig(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const json object, ReadJsonFile(path, kMostConfigBytes));
  const JsonFields fields(object, path.string());
  ModelConfig config;
  CRIA_ASSIGN_OR_RETURN(config.architecture, ReadArchitecture(fields));
  if (config.architecture != "LlamaForCausalLM") {
    return fields.Bad(
        ErrorCode::kUnsupported, "architectures",
        std::format("is [\"{}\"]; this version converts LlamaForCausalLM", config.architecture));
  }
  for (const NeutralField& field : kNeutralFields) {
    CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, field));
  }
  CRIA_ASSIGN_OR_RETURN(const std::string activation, fields.String("hidden_act", "silu"));
  if (activation != "silu") {
    return fields.Bad(ErrorCode::kUnsupported, "hidden_act",
                      std::format("is \"{}\"; this version supports silu", activation));
  }
  CRIA_RETURN_IF_ERROR(ReadSizes(fields, config));
  CRIA_ASSIGN_OR_RETURN(config.rms_norm_eps, fields.Number("rms_norm_eps"));
  CRIA_ASSIGN_OR_RETURN(config.tie_word_embeddings, fields.Bool("tie_word_embeddings", false));
  CRIA_RETURN_IF_ERROR(ReadRope(fields, config));
  CRIA_ASSIGN_OR_RETURN(config.sliding_window, ReadSlidingWindow(fields, config));
  if (const Status valid = ValidateConfig(config); !valid) {
    return Fail(valid.error().code(),
                std::format("{}: {}", path.string(), valid.error().message()));
  }
  return config;
}

}  // namespace cria
