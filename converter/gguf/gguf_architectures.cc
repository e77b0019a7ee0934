#include "converter/gguf/gguf_architectures.h"

#include <algorithm>
#include <array>
#include <string>

#include "converter/input/list_names.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using KeyName = std::string_view;

constexpr std::array<KeyName, 3> kGemma2Keys = {"attention.scale", "attn_logit_softcapping",
                                                "final_logit_softcapping"};
constexpr std::array<KeyName, 2> kGemma3Keys = {"attention.scale", "final_logit_softcapping"};
constexpr std::array<KeyName, 1> kGemma4Keys = {"final_logit_softcapping"};
constexpr std::array<KeyName, 4> kGraniteKeys = {"attention.scale", "embedding_scale",
                                                 "residual_scale", "logit_scale"};

constexpr std::array<KeyName, 3> kLfm2MoeKeys = {"expert_weights_scale", "expert_gating_func",
                                                 "leading_dense_block_count"};
constexpr std::array<KeyName, 1> kGptOssKeys = {"expert_gating_func"};
// In texts, the positions of all sections are the same.
constexpr std::array<KeyName, 2> kQwen35Keys = {"rope.dimension_sections", "nextn_predict_layers"};

constexpr std::array<std::string_view, 2> kLikeLlama = {"MistralForCausalLM",
                                                        "MinistralForCausalLM"};
constexpr std::array<std::string_view, 1> kLikeGranite = {"GraniteMoeHybridForCausalLM"};
constexpr std::array<std::string_view, 1> kLikeGemma4 = {"Gemma4UnifiedForCausalLM"};

constexpr std::array kGgufArchitectures = {
    GgufArchitecture{.name = "llama",
                     .hugging_face = "LlamaForCausalLM",
                     .is_interleaved = true,
                     .mixture = "MixtralForCausalLM",
                     .not_told_apart = kLikeLlama},
    GgufArchitecture{.name = "qwen2", .hugging_face = "Qwen2ForCausalLM", .qkv_bias = true},
    GgufArchitecture{.name = "qwen3", .hugging_face = "Qwen3ForCausalLM", .qk_norm = true},
    GgufArchitecture{.name = "gemma",
                     .hugging_face = "GemmaForCausalLM",
                     .hidden_act = HiddenAct::kGeluTanh,
                     .scales_embedding = true},
    GgufArchitecture{.name = "gemma2",
                     .hugging_face = "Gemma2ForCausalLM",
                     .norm_placement = NormPlacement::kBeforeAndAfter,
                     .hidden_act = HiddenAct::kGeluTanh,
                     .scales_embedding = true,
                     .layers_with_other_scores = 46,  // 27B
                     .sliding_window = 4096,
                     .sliding_window_pattern = 2,
                     .attn_logit_softcapping = 50.0f,
                     .final_logit_softcapping = 30.0f,
                     .own_keys = kGemma2Keys},
    GgufArchitecture{.name = "gemma3",
                     .hugging_face = "Gemma3ForCausalLM",
                     .qk_norm = true,
                     .norm_placement = NormPlacement::kBeforeAndAfter,
                     .hidden_act = HiddenAct::kGeluTanh,
                     .scales_embedding = true,
                     .layers_with_other_scores = 62,  // 27B
                     .sliding_window_pattern = 6,
                     .sliding_rope_theta = 10000.0f,
                     .own_keys = kGemma3Keys},
    GgufArchitecture{.name = "gemma4",
                     .hugging_face = "Gemma4ForCausalLM",
                     .qk_norm = true,
                     .norm_placement = NormPlacement::kBeforeAndAfter,
                     .hidden_act = HiddenAct::kGeluTanh,
                     .scales_embedding = true,
                     .sliding_rope_theta = 10000.0f,
                     .is_gemma4 = true,
                     .not_told_apart = kLikeGemma4,
                     .own_keys = kGemma4Keys},
    GgufArchitecture{.name = "phi3",
                     .hugging_face = "Phi3ForCausalLM",
                     .has_fused_projections = true,
                     .has_partial_rotary = true,
                     .has_longrope = true},
    GgufArchitecture{.name = "smollm3",
                     .hugging_face = "SmolLM3ForCausalLM",
                     .is_interleaved = true,
                     .no_rope_layer_interval = 4},
    // Granite 4.0's models have this name if they are no mixtures and have no layers of Mamba.
    GgufArchitecture{.name = "granite",
                     .hugging_face = "GraniteForCausalLM",
                     .is_interleaved = true,
                     .has_rope_switch = true,
                     .not_told_apart = kLikeGranite,
                     .own_keys = kGraniteKeys},
    GgufArchitecture{.name = "granitehybrid",
                     .hugging_face = "GraniteMoeHybridForCausalLM",
                     .is_interleaved = true,
                     .has_rope_switch = true,
                     .mixture = "GraniteMoeHybridForCausalLM",
                     .shared_mixture = "GraniteMoeHybridForCausalLM",
                     .has_mamba = true,
                     .own_keys = kGraniteKeys},
    // And OLMo 3, whose layers with a window have frequencies that are not scaled.
    GgufArchitecture{.name = "olmo2",
                     .hugging_face = "Olmo2ForCausalLM",
                     .joint_qk_norm = true,
                     .norm_placement = NormPlacement::kAfter,
                     .with_windows = "Olmo3ForCausalLM",
                     .sliding_window_pattern = 4,
                     .sliding_has_rope_scaling = false},
    GgufArchitecture{.name = "mistral3",
                     .hugging_face = "Ministral3ForCausalLM",
                     .is_interleaved = true,
                     .has_query_scaling = true},
    GgufArchitecture{.name = "exaone4",
                     .hugging_face = "Exaone4ForCausalLM",
                     .qk_norm = true,
                     .norm_placement = NormPlacement::kAfter,
                     .sliding_window_pattern = 4,
                     .only_windows_have_rope = true},
    GgufArchitecture{
        .name = "ernie4_5", .hugging_face = "Ernie4_5ForCausalLM", .is_interleaved = true},
    GgufArchitecture{.name = "seed_oss", .hugging_face = "SeedOssForCausalLM"},
    GgufArchitecture{.name = "hunyuan-dense",
                     .hugging_face = "HunYuanDenseV1ForCausalLM",
                     .qk_norm = true,
                     .qk_norm_after_rope = true},
    GgufArchitecture{.name = "arcee",
                     .hugging_face = "ArceeForCausalLM",
                     .is_interleaved = true,
                     .hidden_act = HiddenAct::kRelu2,
                     .ungated_mlp = true},
    GgufArchitecture{.name = "apertus",
                     .hugging_face = "ApertusForCausalLM",
                     .qk_norm = true,
                     .hidden_act = HiddenAct::kXielu,
                     .ungated_mlp = true},
    GgufArchitecture{.name = "glm4",
                     .hugging_face = "Glm4ForCausalLM",
                     .is_interleaved = true,
                     .norm_placement = NormPlacement::kBeforeAndAfter,
                     .has_fused_projections = true,
                     .has_partial_rotary = true},
    GgufArchitecture{.name = "qwen2moe",
                     .hugging_face = "Qwen2MoeForCausalLM",
                     .mixture = "Qwen2MoeForCausalLM",
                     .normalizes_expert_weights = false,
                     .has_shared_expert_gate = true},
    GgufArchitecture{.name = "qwen3moe",
                     .hugging_face = "Qwen3MoeForCausalLM",
                     .qk_norm = true,
                     .mixture = "Qwen3MoeForCausalLM"},
    GgufArchitecture{.name = "olmoe",
                     .hugging_face = "OlmoeForCausalLM",
                     .joint_qk_norm = true,
                     .mixture = "OlmoeForCausalLM",
                     .normalizes_expert_weights = false},
    GgufArchitecture{.name = "granitemoe",
                     .hugging_face = "GraniteMoeForCausalLM",
                     .is_interleaved = true,
                     .mixture = "GraniteMoeForCausalLM",
                     .shared_mixture = "GraniteMoeSharedForCausalLM",
                     .own_keys = kGraniteKeys},
    GgufArchitecture{.name = "gpt-oss",
                     .hugging_face = "GptOssForCausalLM",
                     .sliding_window_pattern = 2,
                     .mixture = "GptOssForCausalLM",
                     .is_gpt_oss = true,
                     .own_keys = kGptOssKeys},
    GgufArchitecture{
        .name = "lfm2", .hugging_face = "Lfm2ForCausalLM", .qk_norm = true, .has_short_conv = true},
    // Which layers are dense is read from the tensors.
    GgufArchitecture{.name = "lfm2moe",
                     .hugging_face = "Lfm2MoeForCausalLM",
                     .qk_norm = true,
                     .mixture = "Lfm2MoeForCausalLM",
                     .has_sigmoid_scores = true,
                     .has_short_conv = true,
                     .own_keys = kLfm2MoeKeys},
    GgufArchitecture{.name = "qwen35",
                     .hugging_face = "Qwen3_5ForCausalLM",
                     .qk_norm = true,
                     .has_partial_rotary = true,
                     .has_linear_attention = true,
                     .has_tiled_value_heads = true,
                     .own_keys = kQwen35Keys},
    GgufArchitecture{.name = "qwen35moe",
                     .hugging_face = "Qwen3_5MoeForCausalLM",
                     .qk_norm = true,
                     .has_partial_rotary = true,
                     .mixture = "Qwen3_5MoeForCausalLM",
                     .has_shared_expert_gate = true,
                     .has_linear_attention = true,
                     .has_tiled_value_heads = true,
                     .own_keys = kQwen35Keys},
    GgufArchitecture{.name = "qwen3next",
                     .hugging_face = "Qwen3NextForCausalLM",
                     .qk_norm = true,
                     .has_partial_rotary = true,
                     .mixture = "Qwen3NextForCausalLM",
                     .has_shared_expert_gate = true,
                     .has_linear_attention = true,
                     .own_keys = kQwen35Keys},
};

}  // namespace

std::span<const GgufArchitecture> GgufArchitectures() { return kGgufArchitectures; }

bool GgufArchitecture::Uses(std::string_view key) const {
  return std::ranges::contains(own_keys, key);
}

Result<GgufArchitecture> ReadGgufArchitecture(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.architecture";
  CRIA_ASSIGN_OR_RETURN(const std::string name, metadata.String(kKey));
  const auto* found = std::ranges::find(kGgufArchitectures, name, &GgufArchitecture::name);
  if (found != kGgufArchitectures.end()) return *found;
  if (name == "gemma-embedding") {
    return metadata.Bad(kKey,
                        "is \"gemma-embedding\": the model's attention looks in both directions, "
                        "which is not supported",
                        ErrorCode::kUnsupported);
  }
  return metadata.Bad(kKey,
                      Format("is \"{}\"; this version converts {}", Quotable(name),
                             ListNames(kGgufArchitectures, &GgufArchitecture::name)),
                      ErrorCode::kUnsupported);
}

}  // namespace cria
