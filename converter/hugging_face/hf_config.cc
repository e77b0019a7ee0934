#include "converter/hugging_face/hf_config.h"

#include <algorithm>
#include <array>
#include <format>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converter/hugging_face/hf_rope.h"
#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "converter/input/list_names.h"
#include "converter/layer_kinds.h"
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

// Which fields give the window of attention. layer_types says which layers have it.
enum class Window : uint8_t {
  kNone,              // There is no window, whatever sliding_window and layer_types say.
  kSlidingWindow,     // sliding_window; if it is absent, the window has the default size. Without
                      // layer_types, it is in all layers.
  kUseSlidingWindow,  // use_sliding_window switches it on. Without layer_types, max_window_layers
                      // says in which layers it is.
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
    // transformers reads a configuration of model_type mistral with layer_types as Ministral's.
    Family{.architecture = "MinistralForCausalLM",
           .model_type = "ministral",
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
    NeutralField{"rope_local_base_freq", {}},
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
                                  ListNames(kFamilies, &Family::architecture)));
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

// Which layers have a window, by layer_types, which must exist.
Result<std::vector<bool>> ReadLayerTypes(const JsonFields& fields, uint32_t num_hidden_layers) {
  CRIA_ASSIGN_OR_RETURN(const json* types, fields.Array("layer_types"));
  if (types->size() != num_hidden_layers) {
    return fields.Bad(ErrorCode::kInvalidFile, "layer_types",
                      std::format("has {} entries, but num_hidden_layers is {}", types->size(),
                                  num_hidden_layers));
  }
  std::vector<bool> is_sliding;
  for (const json& type : *types) {
    if (type != kSlidingAttention && type != kFullAttention) {
      return fields.Bad(
          ErrorCode::kUnsupported, "layer_types",
          std::format("has {}; this version supports full_attention and sliding_attention",
                      JsonFields::Text(type)));
    }
    is_sliding.push_back(type == kSlidingAttention);
  }
  return is_sliding;
}

// The window of layers that have one, 0 for none.
Result<uint32_t> ReadWindow(const JsonFields& fields, const Family& family) {
  if (family.window == Window::kNone) return 0;
  if (family.window == Window::kUseSlidingWindow) {
    CRIA_ASSIGN_OR_RETURN(const bool is_used, fields.Bool("use_sliding_window", false));
    if (!is_used) return 0;
  }
  return fields.Integer("sliding_window",
                        UnlessNull(fields, "sliding_window", kDefaultSlidingWindow).value_or(0));
}

// Which layers have the window.
Result<std::vector<bool>> ReadSlidingLayers(const JsonFields& fields, const Family& family,
                                            uint32_t num_hidden_layers, uint32_t window) {
  // ValidateConfig refuses more layers.
  std::vector<bool> is_sliding(std::min(num_hidden_layers, kMaxHiddenLayers), window != 0);
  if (family.window == Window::kNone) return is_sliding;
  if (fields.Find("layer_types") != nullptr) {
    CRIA_ASSIGN_OR_RETURN(is_sliding, ReadLayerTypes(fields, num_hidden_layers));
    if (window != 0 || !std::ranges::contains(is_sliding, true)) return is_sliding;
    return fields.Bad(ErrorCode::kInvalidFile, "layer_types",
                      "has sliding_attention, but sliding_window gives no window");
  }
  if (family.window == Window::kUseSlidingWindow && window != 0) {
    // The number of layers without a window; they come first.
    CRIA_ASSIGN_OR_RETURN(const uint32_t full_layers,
                          fields.Integer("max_window_layers", kDefaultMaxWindowLayers));
    std::fill_n(is_sliding.begin(), std::min<size_t>(full_layers, is_sliding.size()), false);
  }
  return is_sliding;
}

Status ReadLayerKinds(const JsonFields& fields, const Family& family, ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(const uint32_t window, ReadWindow(fields, family));
  CRIA_ASSIGN_OR_RETURN(const std::vector<bool> is_sliding,
                        ReadSlidingLayers(fields, family, config.num_hidden_layers, window));
  AttentionKinds kinds;
  // Parameters of a type that no layer has may be absent.
  if (std::ranges::contains(is_sliding, false)) {
    CRIA_RETURN_IF_ERROR(ReadHfRope(fields, kFullAttention, config, kinds.full));
  }
  if (std::ranges::contains(is_sliding, true)) {
    CRIA_RETURN_IF_ERROR(ReadHfRope(fields, kSlidingAttention, config, kinds.sliding));
    kinds.sliding.sliding_window = window;
  }
  SetLayerKinds(kinds, is_sliding, config);
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
  CRIA_RETURN_IF_ERROR(ReadBiases(fields, family, config));
  CRIA_RETURN_IF_ERROR(ReadLayerKinds(fields, family, config));
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
