#include "converter/hugging_face/hf_config.h"

#include <algorithm>
#include <array>
#include <format>
#include <optional>
#include <string>
#include <string_view>

#include "converter/hugging_face/hf_rope.h"
#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxConfigBytes = 16 << 20;

// Which projections of attention have biases.
enum class AttentionBias : uint8_t {
  kNone,
  kQkv,      // Queries, keys and values, whatever attention_bias says.
  kByField,  // All or none, as attention_bias says.
};

// Which fields give the window of attention.
enum class Window : uint8_t {
  kNone,              // There is no window, whatever sliding_window says.
  kSlidingWindow,     // sliding_window; if it is absent, the window has the default size.
  kUseSlidingWindow,  // use_sliding_window switches it on; max_window_layers or layer_types says
                      // for which layers.
};

// How transformers' class for an architecture interprets the fields: which of them it uses, and the
// defaults of absent ones.
struct Family {
  std::string_view architecture;
  std::string_view model_type;
  std::optional<uint32_t> num_key_value_heads;  // Default; absent: num_attention_heads.
  std::optional<uint32_t> head_dim;  // Default; absent: hidden_size / num_attention_heads.
  AttentionBias attention_bias;
  bool uses_mlp_bias;
  bool qk_norm;
  Window window;
};
constexpr std::array kFamilies = {
    Family{.architecture = "LlamaForCausalLM",
           .model_type = "llama",
           .num_key_value_heads = {},
           .head_dim = {},
           .attention_bias = AttentionBias::kByField,
           .uses_mlp_bias = true,
           .qk_norm = false,
           .window = Window::kNone},
    Family{.architecture = "MistralForCausalLM",
           .model_type = "mistral",
           .num_key_value_heads = 8,
           .head_dim = {},
           .attention_bias = AttentionBias::kNone,
           .uses_mlp_bias = false,
           .qk_norm = false,
           .window = Window::kSlidingWindow},
    Family{.architecture = "Qwen2ForCausalLM",
           .model_type = "qwen2",
           .num_key_value_heads = 32,
           .head_dim = {},
           .attention_bias = AttentionBias::kQkv,
           .uses_mlp_bias = false,
           .qk_norm = false,
           .window = Window::kUseSlidingWindow},
    Family{.architecture = "Qwen3ForCausalLM",
           .model_type = "qwen3",
           .num_key_value_heads = 32,
           .head_dim = 128,
           .attention_bias = AttentionBias::kByField,
           .uses_mlp_bias = false,
           .qk_norm = true,
           .window = Window::kUseSlidingWindow},
};
// Defaults of all families.
constexpr float kDefaultRmsNormEps = 1e-6f;
constexpr uint32_t kDefaultSlidingWindow = 4096;
constexpr uint32_t kDefaultMaxWindowLayers = 28;

// The names of the families in a sentence.
std::string KnownArchitectures() {
  std::string names;
  for (size_t i = 0; i < kFamilies.size(); ++i) {
    if (i > 0) names += i + 1 < kFamilies.size() ? ", " : " and ";
    names += kFamilies[i].architecture;
  }
  return names;
}

// Fields of related models that change the computation. If they are absent, null, false or have
// this number, the computation is that of the known families; any other value is refused.
struct NeutralField {
  std::string_view name;
  std::optional<double> neutral_number;
};
constexpr std::array kNeutralFields = {
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

// Fields that may be absent, but for which transformers knows no meaning of null.
constexpr std::array<std::string_view, 3> kNeverNull = {"tie_word_embeddings", "rms_norm_eps",
                                                        "hidden_act"};

Status RefuseNull(const JsonFields& fields) {
  for (const std::string_view name : kNeverNull) {
    if (!fields.object().contains(name) || fields.Find(name) != nullptr) continue;
    return fields.Bad(ErrorCode::kInvalidFile, name,
                      "is null, which has no meaning here; give its value, or remove the field to "
                      "use the default");
  }
  return {};
}

// The one name in "architectures"; nothing if that is absent or empty, as in a configuration that
// was saved without a model.
Result<std::optional<std::string>> ReadArchitecture(const JsonFields& fields) {
  const json* architectures = fields.Find("architectures");
  if (architectures == nullptr || *architectures == json::array()) return std::nullopt;
  if (!architectures->is_array() || architectures->size() != 1 ||
      !architectures->front().is_string()) {
    return fields.Bad(
        ErrorCode::kInvalidFile, "architectures",
        std::format("is {}, but must be a list of one name", JsonFields::Text(*architectures)));
  }
  return architectures->front().get<std::string>();
}

// Returns `otherwise`, or nothing if the field is null: null switches the default off, too.
std::optional<uint32_t> UnlessNull(const JsonFields& fields, std::string_view name,
                                   std::optional<uint32_t> otherwise) {
  return fields.object().contains(name) ? std::nullopt : otherwise;
}

// The family that architectures or model_type names. If both are given, they must agree:
// transformers uses model_type, other programs use architectures, and the families interpret fields
// differently.
Result<Family> ReadFamily(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const auto architecture, ReadArchitecture(fields));
  CRIA_ASSIGN_OR_RETURN(const std::string model_type, fields.String("model_type"));
  if (!architecture) {
    const auto by_type = std::ranges::find(kFamilies, model_type, &Family::model_type);
    if (by_type != kFamilies.end()) return *by_type;
    return fields.Bad(ErrorCode::kNotFound, "architectures",
                      "is missing; it must name the kind of model, such as LlamaForCausalLM");
  }
  const auto family = std::ranges::find(kFamilies, *architecture, &Family::architecture);
  if (family == kFamilies.end()) {
    return fields.Bad(ErrorCode::kUnsupported, "architectures",
                      std::format("is [\"{}\"]; this version converts {}", Quotable(*architecture),
                                  KnownArchitectures()));
  }
  if (model_type.empty() || model_type == family->model_type) return *family;
  return fields.Bad(ErrorCode::kInvalidFile, "model_type",
                    std::format("is \"{}\", but architectures names {}, whose model_type is "
                                "\"{}\"; correct the one that is wrong",
                                Quotable(model_type), family->architecture, family->model_type));
}

Status ReadSizes(const JsonFields& fields, const Family& family, ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(config.hidden_size, fields.Integer("hidden_size"));
  CRIA_ASSIGN_OR_RETURN(config.intermediate_size, fields.Integer("intermediate_size"));
  CRIA_ASSIGN_OR_RETURN(config.num_hidden_layers, fields.Integer("num_hidden_layers"));
  CRIA_ASSIGN_OR_RETURN(config.num_attention_heads, fields.Integer("num_attention_heads"));
  CRIA_ASSIGN_OR_RETURN(
      config.num_key_value_heads,
      fields.Integer("num_key_value_heads",
                     UnlessNull(fields, "num_key_value_heads", family.num_key_value_heads)
                         .value_or(config.num_attention_heads)));
  CRIA_ASSIGN_OR_RETURN(config.vocab_size, fields.Integer("vocab_size"));
  CRIA_ASSIGN_OR_RETURN(config.max_position_embeddings, fields.Integer("max_position_embeddings"));
  if (fields.Find("head_dim") != nullptr || family.head_dim.has_value()) {
    CRIA_ASSIGN_OR_RETURN(config.head_dim, fields.Integer("head_dim", family.head_dim));
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

// Whether all layers have a window by layer_types, which must exist.
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

// The window of all layers by layer_types, which must exist: `window`, or 0 for none.
Result<uint32_t> WindowByLayerTypes(const JsonFields& fields, const ModelConfig& config,
                                    uint32_t window) {
  CRIA_ASSIGN_OR_RETURN(const bool all_slide, AllLayersSlide(fields, config.num_hidden_layers));
  if (all_slide && window == 0) {
    return fields.Bad(ErrorCode::kInvalidFile, "layer_types",
                      "is sliding_attention, but sliding_window gives no window");
  }
  return all_slide ? window : 0;
}

Result<uint32_t> ReadWindowIfUsed(const JsonFields& fields, const ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(const bool is_used, fields.Bool("use_sliding_window", false));
  uint32_t window = 0;
  if (is_used) {
    CRIA_ASSIGN_OR_RETURN(
        window,
        fields.Integer("sliding_window",
                       UnlessNull(fields, "sliding_window", kDefaultSlidingWindow).value_or(0)));
  }
  if (fields.Find("layer_types") != nullptr) return WindowByLayerTypes(fields, config, window);
  if (window == 0) return 0;
  // The number of layers without a window; they come first.
  CRIA_ASSIGN_OR_RETURN(const uint32_t full_layers,
                        fields.Integer("max_window_layers", kDefaultMaxWindowLayers));
  if (full_layers >= config.num_hidden_layers) return 0;
  if (full_layers == 0) return window;
  return fields.Bad(ErrorCode::kUnsupported, "max_window_layers",
                    std::format("is {} of {} layers; this version supports a window in all "
                                "layers or in none",
                                full_layers, config.num_hidden_layers));
}

Result<uint32_t> ReadPlainWindow(const JsonFields& fields, const ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(
      const uint32_t window,
      fields.Integer("sliding_window",
                     UnlessNull(fields, "sliding_window", kDefaultSlidingWindow).value_or(0)));
  if (fields.Find("layer_types") == nullptr) return window;
  // transformers ignores layer_types here, so it may only repeat what sliding_window says.
  CRIA_ASSIGN_OR_RETURN(const uint32_t by_types, WindowByLayerTypes(fields, config, window));
  if (by_types == window) return window;
  return fields.Bad(
      ErrorCode::kUnsupported, "layer_types",
      std::format("is full_attention, but sliding_window is {}; remove the wrong one", window));
}

// The window of all layers, 0 for none.
Result<uint32_t> ReadWindow(const JsonFields& fields, const Family& family,
                            const ModelConfig& config) {
  if (family.window == Window::kNone) return 0;
  CRIA_ASSIGN_OR_RETURN(const uint32_t window, family.window == Window::kUseSlidingWindow
                                                   ? ReadWindowIfUsed(fields, config)
                                                   : ReadPlainWindow(fields, config));
  // A window of the longest context's length has no effect.
  return window < config.longest_context() ? window : 0;
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
    case AttentionBias::kByField: {
      CRIA_ASSIGN_OR_RETURN(const bool has_bias, fields.Bool("attention_bias", false));
      config.qkv_bias = config.o_bias = has_bias;
      break;
    }
  }
  if (!family.uses_mlp_bias) return RefuseUnlessNeutral(fields, {"mlp_bias", {}});
  CRIA_ASSIGN_OR_RETURN(config.mlp_bias, fields.Bool("mlp_bias", false));
  return {};
}

Result<ModelConfig> ReadFields(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const Family family, ReadFamily(fields));
  CRIA_RETURN_IF_ERROR(RefuseNull(fields));
  for (const NeutralField& field : kNeutralFields) {
    CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(fields, field));
  }
  CRIA_ASSIGN_OR_RETURN(const std::string activation, fields.String("hidden_act", "silu"));
  if (activation != "silu") {
    return fields.Bad(ErrorCode::kUnsupported, "hidden_act",
                      std::format("is \"{}\"; this version supports silu", Quotable(activation)));
  }
  ModelConfig config = {.architecture = std::string(family.architecture),
                        .qk_norm = family.qk_norm};
  CRIA_RETURN_IF_ERROR(ReadSizes(fields, family, config));
  CRIA_ASSIGN_OR_RETURN(config.rms_norm_eps, fields.Number("rms_norm_eps", kDefaultRmsNormEps));
  CRIA_ASSIGN_OR_RETURN(config.tie_word_embeddings, fields.Bool("tie_word_embeddings", false));
  CRIA_RETURN_IF_ERROR(ReadHfRope(fields, config));
  CRIA_RETURN_IF_ERROR(ReadBiases(fields, family, config));
  CRIA_ASSIGN_OR_RETURN(config.layer_kinds[0].sliding_window, ReadWindow(fields, family, config));
  return config;
}

}  // namespace

Result<ModelConfig> ReadHfConfig(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const json object, ReadJsonFile(path, kMaxConfigBytes));
  CRIA_ASSIGN_OR_RETURN(ModelConfig config, ReadFields(JsonFields(object, path.string())));
  if (const Status valid = ValidateConfig(config); !valid) {
    return Fail(valid.error().code(),
                std::format("{}: {}", path.string(), valid.error().message()));
  }
  return config;
}

}  // namespace cria
