#include "converter/hugging_face/hf_families.h"

#include <algorithm>
#include <array>
#include <string>

#include "converter/hugging_face/gemma4_families.h"
#include "converter/hugging_face/gemma_families.h"
#include "converter/hugging_face/gpt_oss_family.h"
#include "converter/hugging_face/granite_families.h"
#include "converter/hugging_face/linear_attention_families.h"
#include "converter/hugging_face/mamba_families.h"
#include "converter/hugging_face/mixture_families.h"
#include "converter/hugging_face/short_conv_families.h"
#include "converter/input/list_names.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;
using Name = std::string_view;

constexpr std::array<Name, 1> kPhi3Fields = {"partial_rotary_factor"};
constexpr std::array<Name, 2> kPhi3NeverNull = {"partial_rotary_factor",
                                                "original_max_position_embeddings"};
constexpr std::array<Name, 2> kSmolLm3Fields = {"no_rope_layers", "no_rope_layer_interval"};
constexpr std::array<Name, 1> kSmolLm3NeverNull = {"no_rope_layer_interval"};
constexpr std::array<Name, 1> kExaone4Fields = {"sliding_window_pattern"};
constexpr std::array<Name, 1> kExaone4NeverNull = {"num_key_value_heads"};
constexpr std::array<Name, 1> kErnieFields = {"use_bias"};
constexpr std::array<Name, 3> kSeedOssNeverNull = {"attention_bias", "attention_out_bias",
                                                   "mlp_bias"};
constexpr std::array<Name, 1> kGlmNeverNull = {"attention_bias"};
constexpr std::array<Name, 3> kGlm4NeverNull = {"attention_bias", "num_key_value_heads",
                                                "head_dim"};
constexpr std::array kGlm4Modules = {
    LayerModule{"post_self_attn_layernorm", "post_attention_layernorm"},
    LayerModule{"post_attention_layernorm", "pre_feedforward_layernorm"},
    LayerModule{"post_mlp_layernorm", "post_feedforward_layernorm"}};

// The class has the norms whatever the field says.
constexpr std::array<Name, 1> kHunyuanFields = {"use_qk_norm"};
constexpr std::array kHunyuanModules = {
    LayerModule{"self_attn.query_layernorm", "self_attn.q_norm"},
    LayerModule{"self_attn.key_layernorm", "self_attn.k_norm"}};

// The text model of a model that sees pictures, too.
constexpr Family TextOf(Family family, std::string_view architecture, std::string_view model_type) {
  family.shown_architecture = family.architecture;
  family.nested_in = "text_config";
  family.nested_model_type = family.model_type;
  family.architecture = architecture;
  family.model_type = model_type;
  family.outer_tie_word_embeddings = family.tie_word_embeddings;
  return family;
}

constexpr std::string_view kMinistral3Rope =
    R"({"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 16384, "llama_4_scaling_beta": 0.1})";

constexpr std::string_view kApertusRope =
    R"({"rope_type": "llama3", "rope_theta": 12000000.0, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";
constexpr std::array kApertusModules = {
    LayerModule{"attention_layernorm", "input_layernorm"},
    LayerModule{"feedforward_layernorm", "post_attention_layernorm"}};

// Its text model has the fields of Gemma3ForCausalLM, but does not cap logits.
constexpr Family Gemma3WithVision() {
  Family family = TextOf(kGemma3, "Gemma3ForConditionalGeneration", "gemma3");
  family.own_fields = kGemma3WithVisionFields;
  return family;
}

constexpr Family GemmaUnifiedText() {
  Family family =
      TextOf(Gemma4Unified(), "Gemma4UnifiedForConditionalGeneration", "gemma4_unified");
  family.shown_architecture = kGemma4.architecture;
  return family;
}

constexpr std::array kFamilies = {
    Family{.architecture = "LlamaForCausalLM",
           .model_type = "llama",
           .attention_bias = AttentionBias::kByField,
           .uses_mlp_bias = true,
           .rope_fields = RopeFields::kSharedOrByLayerType},
    Family{.architecture = "MistralForCausalLM",
           .model_type = "mistral",
           .num_key_value_heads = 8,
           .window = Window::kSlidingWindow,
           .sliding_window = 4096,
           .rope_fields = RopeFields::kSharedOrByLayerType},
    // transformers reads a configuration of model_type mistral with layer_types as Ministral's.
    Family{.architecture = "MinistralForCausalLM",
           .model_type = "ministral",
           .num_key_value_heads = 8,
           .window = Window::kSlidingWindow,
           .sliding_window = 4096,
           .rope_fields = RopeFields::kSharedOrByLayerType},
    Family{.architecture = "Ministral3ForCausalLM",
           .model_type = "ministral3",
           .num_key_value_heads = 8,
           .head_dim = 128,
           .rms_norm_eps = 1e-5f,
           .window = Window::kAll,
           .refuses_window_of_0 = true,
           .default_rope_parameters = kMinistral3Rope,
           .has_query_scaling = true},
    Family{.architecture = "Qwen2ForCausalLM",
           .model_type = "qwen2",
           .num_key_value_heads = 32,
           .attention_bias = AttentionBias::kQkv,
           .window = Window::kUseSlidingWindow,
           .sliding_window = 4096,
           .rope_fields = RopeFields::kSharedOrByLayerType},
    Family{.architecture = "Qwen3ForCausalLM",
           .model_type = "qwen3",
           .num_key_value_heads = 32,
           .head_dim = 128,
           .attention_bias = AttentionBias::kByField,
           .qk_norm = true,
           .window = Window::kUseSlidingWindow,
           .sliding_window = 4096,
           .rope_fields = RopeFields::kSharedOrByLayerType},
    kGemma,
    kGemma2,
    kGemma3,
    Gemma3WithVision(),
    kGemma4,
    TextOf(kGemma4, "Gemma4ForConditionalGeneration", "gemma4"),
    Gemma4Unified(),
    GemmaUnifiedText(),
    Family{.architecture = "Phi3ForCausalLM",
           .model_type = "phi3",
           .rms_norm_eps = 1e-5f,
           .window = Window::kAll,
           .rope_fields = RopeFields::kPhi3,
           .has_fused_projections = true,
           .own_fields = kPhi3Fields,
           .never_null = kPhi3NeverNull},
    Family{.architecture = "SmolLM3ForCausalLM",
           .model_type = "smollm3",
           .num_key_value_heads = 4,
           .tie_word_embeddings = true,
           .attention_bias = AttentionBias::kByField,
           .uses_mlp_bias = true,
           .window = Window::kLayersWithoutRope,
           .rope_theta = 2000000.0f,
           .own_fields = kSmolLm3Fields,
           .never_null = kSmolLm3NeverNull},
    kGranite,
    Family{.architecture = "Olmo2ForCausalLM",
           .model_type = "olmo2",
           .rms_norm_eps = 1e-5f,
           .attention_bias = AttentionBias::kByField,
           .joint_qk_norm = true,
           .norm_placement = NormPlacement::kAfter,
           .window = Window::kRefused},
    Family{.architecture = "Olmo3ForCausalLM",
           .model_type = "olmo3",
           .rms_norm_eps = 1e-5f,
           .attention_bias = AttentionBias::kByField,
           .joint_qk_norm = true,
           .norm_placement = NormPlacement::kAfter,
           .window = Window::kPattern,
           .sliding_window = 4096,
           .sliding_window_pattern = 4,
           .rope_fields = RopeFields::kOlmo3,
           .rope_theta = 500000.0f},
    Family{.architecture = "Exaone4ForCausalLM",
           .model_type = "exaone4",
           .num_key_value_heads = 32,
           .rms_norm_eps = 1e-5f,
           .qk_norm = true,
           .norm_placement = NormPlacement::kAfter,
           .window = Window::kPattern,
           .sliding_window = 4096,
           .sliding_window_pattern = 4,
           .refuses_window_of_0 = true,
           .only_windows_have_rope = true,
           .own_fields = kExaone4Fields,
           .never_null = kExaone4NeverNull},
    Family{.architecture = "Ernie4_5ForCausalLM",
           .model_type = "ernie4_5",
           .num_key_value_heads = 2,
           .head_dim = 128,
           .rms_norm_eps = 1e-5f,
           .tie_word_embeddings = true,
           .attention_bias = AttentionBias::kByUseBias,
           .window = Window::kRefused,
           .rope_theta = 500000.0f,
           .has_interleaved_rope = true,
           .own_fields = kErnieFields},
    Family{.architecture = "SeedOssForCausalLM",
           .model_type = "seed_oss",
           .num_key_value_heads = 8,
           .head_dim = 128,
           .attention_bias = AttentionBias::kQkvByField,
           .output_bias_field = "attention_out_bias",
           .uses_mlp_bias = true,
           .window = Window::kRefused,
           .never_null = kSeedOssNeverNull},
    Family{.architecture = "HunYuanDenseV1ForCausalLM",
           .model_type = "hunyuan_v1_dense",
           .rms_norm_eps = 1e-5f,
           .attention_bias = AttentionBias::kByField,
           .qk_norm = true,
           .qk_norm_after_rope = true,
           .window = Window::kRefused,
           .has_ntk_alpha = true,
           .layer_modules = kHunyuanModules,
           .own_fields = kHunyuanFields},
    Family{.architecture = "ArceeForCausalLM",
           .model_type = "arcee",
           .rms_norm_eps = 1e-5f,
           .attention_bias = AttentionBias::kByField,
           .uses_mlp_bias = true,
           .activation = "relu2",
           .has_gate = false,
           .window = Window::kRefused},
    Family{.architecture = "ApertusForCausalLM",
           .model_type = "apertus",
           .rms_norm_eps = 1e-5f,
           .attention_bias = AttentionBias::kByField,
           .qk_norm = true,
           .activation = "xielu",
           .has_gate = false,
           .window = Window::kRefused,
           .rope_theta = 12000000.0f,
           .default_rope_parameters = kApertusRope,
           .layer_modules = kApertusModules},
    Family{.architecture = "GlmForCausalLM",
           .model_type = "glm",
           .num_key_value_heads = 2,
           .head_dim = 128,
           .rms_norm_eps = 1.5625e-7f,
           .attention_bias = AttentionBias::kQkvByField,
           .window = Window::kRefused,
           .rope_fields = RopeFields::kPartial,
           .partial_rotary_factor = 0.5,
           .has_interleaved_rope = true,
           .has_fused_projections = true,
           .own_fields = kPhi3Fields,
           .never_null = kGlmNeverNull},
    Family{.architecture = "Glm4ForCausalLM",
           .model_type = "glm4",
           .num_key_value_heads = 2,
           .head_dim = 128,
           .rms_norm_eps = 1.5625e-7f,
           .attention_bias = AttentionBias::kQkvByField,
           .norm_placement = NormPlacement::kBeforeAndAfter,
           .window = Window::kRefused,
           .rope_fields = RopeFields::kPartial,
           .partial_rotary_factor = 0.5,
           .has_interleaved_rope = true,
           .has_fused_projections = true,
           .layer_modules = kGlm4Modules,
           .own_fields = kPhi3Fields,
           .never_null = kGlm4NeverNull},
    kMixtral,
    kQwen2Moe,
    kQwen3Moe,
    kOlmoe,
    kGraniteMoe,
    kGraniteMoeShared,
    kGraniteHybrid,
    kLfm2,
    kLfm2Moe,
    kLfm3,
    kGptOss,
    kQwen3Next,
    Qwen35(),
    TextOf(Qwen35(), "Qwen3_5ForConditionalGeneration", "qwen3_5"),
    Qwen35Moe(),
    TextOf(Qwen35Moe(), "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe"),
};

constexpr std::array kVisionModels = {
    VisionModel{"Mistral3ForConditionalGeneration", "mistral3", "mistral", true},
    VisionModel{"SmolVLMForConditionalGeneration", "smolvlm", "llama", false},
    VisionModel{"Idefics3ForConditionalGeneration", "idefics3", "llama", false},
    VisionModel{"LlavaForConditionalGeneration", "llava", "llama", false},
    VisionModel{"LlavaNextForConditionalGeneration", "llava_next", "llama", false},
    VisionModel{"InternVLForConditionalGeneration", "internvl", "qwen2", true},
};

// What the class of the text model's head does with logits, the one around it does not.
bool CanBeWithinAnother(const Family& family) {
  return family.nested_in.empty() && family.multipliers == Multipliers::kNone &&
         !family.final_logit_softcapping;
}

Result<Family> WithinVisionModel(const JsonFields& fields, const VisionModel& model) {
  constexpr Name kNestedIn = "text_config";
  const json* nested = fields.Find(kNestedIn);
  if (nested == nullptr || !nested->is_object()) {
    return fields.Bad(ErrorCode::kInvalidFile, kNestedIn,
                      "must be an object with the text model's fields");
  }
  const JsonFields text(*nested, fields.where(), kNestedIn);
  CRIA_ASSIGN_OR_RETURN(const std::string type, text.String("model_type", model.text_model_type));
  const auto* found = std::ranges::find(kFamilies, type, &Family::model_type);
  if (found == kFamilies.end() || !CanBeWithinAnother(*found)) {
    return text.Bad(ErrorCode::kUnsupported, "model_type",
                    Format("is \"{}\", which this version does not convert within a {}",
                           Quotable(type), model.architecture));
  }
  Family family = *found;
  family.shown_architecture = family.architecture;
  family.nested_model_type = family.model_type;
  family.architecture = model.architecture;
  family.model_type = model.model_type;
  family.nested_in = kNestedIn;
  family.outer_tie_word_embeddings = model.tie_word_embeddings;
  return family;
}

// A model for embeddings is saved without a head, by its own name: "Qwen3Model" is what
// "Qwen3ForCausalLM" has below the head.
std::string NameWithHead(std::string name) {
  constexpr std::string_view kWithout = "Model";
  if (!name.ends_with(kWithout)) return name;
  const std::string with_head = name.substr(0, name.size() - kWithout.size()) + "ForCausalLM";
  return std::ranges::contains(kFamilies, with_head, &Family::architecture) ? with_head : name;
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
        Format("is {}, but must be a list of one name", JsonFields::Text(*architectures)));
  }
  return NameWithHead(architectures->front().get<std::string>());
}

// Why a model of a family that is known otherwise cannot be converted; "" for others.
std::string_view ReasonAgainst(std::string_view architecture) {
  if (architecture == "Gemma3TextModel") {
    return "is EmbeddingGemma, whose attention looks in both directions, which is not supported";
  }
  if (architecture.ends_with("ForSequenceClassification")) {
    return "has a head for classes, which is not supported";
  }
  return {};
}

}  // namespace

std::span<const Family> HfFamilies() { return kFamilies; }

std::span<const VisionModel> VisionModels() { return kVisionModels; }

bool Family::Uses(std::string_view field) const { return std::ranges::contains(own_fields, field); }

Result<Family> ReadHfFamily(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const auto architecture, ReadArchitecture(fields));
  CRIA_ASSIGN_OR_RETURN(const std::string model_type, fields.String("model_type"));
  const auto* family = architecture
                           ? std::ranges::find(kFamilies, *architecture, &Family::architecture)
                           : std::ranges::find(kFamilies, model_type, &Family::model_type);
  const auto* vision =
      architecture ? std::ranges::find(kVisionModels, *architecture, &VisionModel::architecture)
                   : std::ranges::find(kVisionModels, model_type, &VisionModel::model_type);
  const bool is_family = family != kFamilies.end();
  if (!is_family && vision == kVisionModels.end()) {
    if (!architecture) {
      return fields.Bad(ErrorCode::kNotFound, "architectures",
                        "is missing; it must name the kind of model, such as LlamaForCausalLM");
    }
    if (const std::string_view reason = ReasonAgainst(*architecture); !reason.empty()) {
      return fields.Bad(ErrorCode::kUnsupported, "architectures",
                        Format("is [\"{}\"]: the model {}", Quotable(*architecture), reason));
    }
    return fields.Bad(ErrorCode::kUnsupported, "architectures",
                      Format("is [\"{}\"]; this version converts {}, and the text models of {}",
                             Quotable(*architecture), ListNames(kFamilies, &Family::architecture),
                             ListNames(kVisionModels, &VisionModel::architecture)));
  }
  const Name wanted = is_family ? family->model_type : vision->model_type;
  if (!model_type.empty() && model_type != wanted) {
    return fields.Bad(ErrorCode::kInvalidFile, "model_type",
                      Format("is \"{}\", but architectures names {}, whose model_type is "
                             "\"{}\"; correct the one that is wrong",
                             Quotable(model_type), *architecture, wanted));
  }
  if (is_family) return *family;
  return WithinVisionModel(fields, *vision);
}

}  // namespace cria
