#include "converter/gguf/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "converter/checkpoint/layer_kinds.h"
#include "converter/checkpoint/xielu_numbers.h"
#include "converter/gguf/gguf_gemma4.h"
#include "converter/gguf/gguf_gpt_oss.h"
#include "converter/gguf/gguf_rope.h"
#include "core/format.h"

namespace cria {
namespace {

// Keys of related models that change the computation. If they are absent, 0, false or have this
// value, the computation is Llama's.
struct NeutralKey {
  std::string_view name;
  double neutral = 0.0;
};
constexpr std::array kNeutralKeys = {
    NeutralKey{"expert_weights_scale", 1.0}, NeutralKey{"expert_gating_func", 1.0},  // Softmax.
    NeutralKey{"expert_group_count", 1.0},   NeutralKey{"leading_dense_block_count"},
    NeutralKey{"use_parallel_residual"},     NeutralKey{"logit_scale", 1.0},
    NeutralKey{"residual_scale", 1.0},       NeutralKey{"embedding_scale", 1.0},
    NeutralKey{"attention.scale"},           NeutralKey{"attention.clamp_kqv"},
    NeutralKey{"attention.max_alibi_bias"},  NeutralKey{"attention.temperature_length"},
    NeutralKey{"attn_logit_softcapping"},    NeutralKey{"final_logit_softcapping"},
    NeutralKey{"rope.dimension_sections"},   NeutralKey{"nextn_predict_layers"},
};

class ConfigReader {
 public:
  ConfigReader(const GgufMetadata& metadata, const GgufArchitecture& architecture)
      : metadata_(metadata), architecture_(architecture) {}

  Result<ModelConfig> Read(uint32_t vocab_size) {
    for (const NeutralKey& key : kNeutralKeys) {
      if (!architecture_.Uses(key.name)) CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(key));
    }
    CRIA_ASSIGN_OR_RETURN(const bool is_causal, metadata_.Bool(Key("attention.causal"), true));
    if (!is_causal) return Unsupported("attention.causal", "is false");
    config_.architecture = architecture_.hugging_face;
    config_.vocab_size = vocab_size;
    config_.qkv_bias = architecture_.qkv_bias;
    config_.qk_norm = architecture_.qk_norm;
    config_.joint_qk_norm = architecture_.joint_qk_norm;
    config_.qk_norm_after_rope = architecture_.qk_norm_after_rope;
    config_.ungated_mlp = architecture_.ungated_mlp;
    config_.norm_placement = architecture_.norm_placement;
    config_.hidden_act = architecture_.hidden_act;
    CRIA_RETURN_IF_ERROR(ReadSizes());
    if (!architecture_.is_gemma4) CRIA_RETURN_IF_ERROR(ReadHeadDim());
    CRIA_ASSIGN_OR_RETURN(config_.rms_norm_eps,
                          metadata_.Number(Key("attention.layer_norm_rms_epsilon")));
    CRIA_ASSIGN_OR_RETURN(
        config_.attn_logit_softcapping,
        ReadSoftCap("attn_logit_softcapping", architecture_.attn_logit_softcapping));
    CRIA_ASSIGN_OR_RETURN(
        config_.final_logit_softcapping,
        ReadSoftCap("final_logit_softcapping", architecture_.final_logit_softcapping));
    CRIA_RETURN_IF_ERROR(ReadExperts());
    CRIA_RETURN_IF_ERROR(ReadLayerKinds());
    CRIA_RETURN_IF_ERROR(ReadQueryScaling());
    CRIA_RETURN_IF_ERROR(ReadXielu());
    return config_;
  }

 private:
  std::string Key(std::string_view name) const { return Format("{}.{}", architecture_.name, name); }

  std::unexpected<Error> Unsupported(std::string_view name, std::string_view what) const {
    return metadata_.Bad(Key(name), Format("{}, which this version does not support", what),
                         ErrorCode::kUnsupported);
  }

  Status RefuseUnlessNeutral(const NeutralKey& neutral) const {
    const std::string key = Key(neutral.name);
    if (!metadata_.Has(key)) return {};
    if (const bool* flag = metadata_.Find<bool>(key); flag != nullptr && !*flag) return {};
    if (const auto value = metadata_.Number(key);
        value && (*value == 0.0f || *value == neutral.neutral)) {
      return {};
    }
    return Unsupported(neutral.name, "changes the computation");
  }

  Result<float> ReadSoftCap(std::string_view name, std::optional<float> otherwise) const {
    if (!architecture_.Uses(name)) return 0.0f;
    return metadata_.Number(Key(name), otherwise.value_or(0.0f));
  }

  Status ReadSizes() {
    struct Size {
      std::string_view name;
      uint32_t* field;
    };
    for (const Size& size : {Size{"embedding_length", &config_.hidden_size},
                             Size{"feed_forward_length", &config_.intermediate_size},
                             Size{"block_count", &config_.num_hidden_layers},
                             Size{"attention.head_count", &config_.num_attention_heads},
                             Size{"context_length", &config_.max_position_embeddings}}) {
      // ReadGgufGemma4 reads those of each layer.
      if (architecture_.is_gemma4 && size.field == &config_.intermediate_size) continue;
      // A model whose layers all have experts may not have the width of a dense feed-forward.
      const bool is_of_experts = size.field == &config_.intermediate_size &&
                                 architecture_.has_linear_attention &&
                                 !metadata_.Has(Key(size.name));
      CRIA_ASSIGN_OR_RETURN(
          *size.field,
          metadata_.Integer(Key(is_of_experts ? "expert_feed_forward_length" : size.name)));
    }
    if (architecture_.is_gemma4) return {};
    if (architecture_.has_short_conv) return ReadShortConv();
    if (architecture_.has_linear_attention) CRIA_RETURN_IF_ERROR(ReadLinearAttention());
    if (architecture_.has_mamba) return ReadMamba();
    CRIA_ASSIGN_OR_RETURN(
        config_.num_key_value_heads,
        metadata_.Integer(Key("attention.head_count_kv"), config_.num_attention_heads));
    return {};
  }

  // The heads of keys and values are given for each layer, or for all of them; a layer without
  // attention has none.
  Status ReadHeadsByLayer() {
    const std::string key = Key("attention.head_count_kv");
    const size_t num_layers = std::min(config_.num_hidden_layers, kMaxHiddenLayers);
    has_no_heads_.assign(num_layers, false);
    if (metadata_.Find<int64_t>(key) != nullptr || !metadata_.Has(key)) {
      CRIA_ASSIGN_OR_RETURN(config_.num_key_value_heads,
                            metadata_.Integer(key, config_.num_attention_heads));
      return {};
    }
    CRIA_ASSIGN_OR_RETURN(const auto* counts, metadata_.Array<std::vector<int64_t>>(key));
    if (counts->size() != num_layers) {
      return metadata_.Bad(key, Format("has {} entries, but block_count is {}", counts->size(),
                                       config_.num_hidden_layers));
    }
    int64_t heads = 0;
    for (size_t i = 0; i < num_layers; ++i) {
      const int64_t count = (*counts)[i];
      has_no_heads_[i] = count == 0;
      if (count == 0) continue;
      if (count < 0 || count > UINT32_MAX || (heads != 0 && count != heads)) {
        return metadata_.Bad(key, Format("has {} for layer {}, but layers with attention must have "
                                         "the same number",
                                         count, i));
      }
      heads = count;
    }
    config_.num_key_value_heads = static_cast<uint32_t>(heads);
    if (heads != 0) return {};
    return metadata_.Bad(key, "is 0 for every layer, but this version needs a layer with attention",
                         ErrorCode::kUnsupported);
  }

  Status ReadShortConv() {
    CRIA_RETURN_IF_ERROR(ReadHeadsByLayer());
    if (!std::ranges::contains(has_no_heads_, true)) return {};
    CRIA_ASSIGN_OR_RETURN(config_.conv_L_cache, metadata_.Integer(Key("shortconv.l_cache")));
    return {};
  }

  Status ReadMamba() {
    CRIA_RETURN_IF_ERROR(ReadHeadsByLayer());
    if (!std::ranges::contains(has_no_heads_, true)) return {};
    CRIA_ASSIGN_OR_RETURN(config_.mamba_d_conv, metadata_.Integer(Key("ssm.conv_kernel")));
    CRIA_ASSIGN_OR_RETURN(config_.mamba_d_state, metadata_.Integer(Key("ssm.state_size")));
    CRIA_ASSIGN_OR_RETURN(config_.mamba_n_groups, metadata_.Integer(Key("ssm.group_count")));
    CRIA_ASSIGN_OR_RETURN(config_.mamba_n_heads, metadata_.Integer(Key("ssm.time_step_rank")));
    CRIA_ASSIGN_OR_RETURN(config_.mamba_d_head, ReadStateHeadDim(config_.mamba_n_heads));
    return {};
  }

  // The channels of each of the heads with states.
  Result<uint32_t> ReadStateHeadDim(uint32_t heads) const {
    const std::string key = Key("ssm.inner_size");
    CRIA_ASSIGN_OR_RETURN(const uint32_t channels, metadata_.Integer(key));
    if (heads != 0 && channels % heads == 0) return channels / heads;
    return metadata_.Bad(key, Format("is {}, which {} heads do not divide", channels, heads));
  }

  Status ReadLinearAttention() {
    config_.attn_output_gate = true;
    // The last layers guess tokens after the next one, and are no layers of the model.
    CRIA_ASSIGN_OR_RETURN(const uint32_t num_drafting,
                          metadata_.Integer(Key("nextn_predict_layers"), 0));
    if (num_drafting >= config_.num_hidden_layers) {
      return metadata_.Bad(
          Key("nextn_predict_layers"),
          Format("is {}, but block_count is {}", num_drafting, config_.num_hidden_layers));
    }
    const uint32_t num_blocks = config_.num_hidden_layers;
    config_.num_hidden_layers -= num_drafting;
    config_.mtp_num_hidden_layers = num_drafting == 1 ? 1 : 0;
    CRIA_RETURN_IF_ERROR(ReadLinearLayers(num_blocks));
    if (!std::ranges::contains(is_linear_, true)) return {};
    CRIA_ASSIGN_OR_RETURN(config_.linear_conv_kernel_dim,
                          metadata_.Integer(Key("ssm.conv_kernel")));
    CRIA_ASSIGN_OR_RETURN(config_.linear_key_head_dim, metadata_.Integer(Key("ssm.state_size")));
    CRIA_ASSIGN_OR_RETURN(config_.linear_num_key_heads, metadata_.Integer(Key("ssm.group_count")));
    CRIA_ASSIGN_OR_RETURN(config_.linear_num_value_heads,
                          metadata_.Integer(Key("ssm.time_step_rank")));
    const uint32_t heads = config_.linear_num_value_heads;
    CRIA_ASSIGN_OR_RETURN(config_.linear_value_head_dim, ReadStateHeadDim(heads));
    config_.linear_tiled_value_heads =
        architecture_.has_tiled_value_heads && heads != config_.linear_num_key_heads;
    return {};
  }

  // As llama.cpp does: by a flag for each layer, or all but every n-th.
  Status ReadLinearLayers(uint32_t num_blocks) {
    const std::string key = Key("attention.recurrent_layers");
    const size_t num_layers = std::min(config_.num_hidden_layers, kMaxHiddenLayers);
    if (const auto* flags = metadata_.Find<std::vector<bool>>(key)) {
      if (flags->size() != num_blocks) {
        return metadata_.Bad(
            key, Format("has {} entries, but block_count is {}", flags->size(), num_blocks));
      }
      is_linear_.assign(flags->begin(), flags->begin() + static_cast<ptrdiff_t>(num_layers));
      return {};
    }
    if (metadata_.Has(key)) return metadata_.Bad(key, "must have true or false for each layer");
    const std::string_view name = "full_attention_interval";
    CRIA_ASSIGN_OR_RETURN(const uint32_t interval, metadata_.Integer(Key(name), 4));
    if (interval == 0) return metadata_.Bad(Key(name), "is 0");
    for (size_t i = 0; i < num_layers; ++i) is_linear_.push_back((i + 1) % interval != 0);
    return {};
  }

  // As in llama.cpp, the positions are those of yarn.
  Status ReadQueryScaling() {
    constexpr std::string_view kScale = "attention.temperature_scale";
    const std::string key = Key(kScale);
    if (!architecture_.has_query_scaling) return RefuseUnlessNeutral({kScale});
    CRIA_ASSIGN_OR_RETURN(config_.llama_4_scaling_beta, metadata_.Number(key, 0.0f));
    if (config_.llama_4_scaling_beta == 0.0f) return {};
    CRIA_ASSIGN_OR_RETURN(config_.llama_4_scaling_positions,
                          metadata_.Integer(Key("rope.scaling.original_context_length"),
                                            config_.max_position_embeddings));
    return {};
  }

  // A number for all layers, or one for each.
  Result<std::vector<double>> ReadXieluKey(std::string_view name) const {
    const std::string key = Format("xielu.{}", name);
    const size_t num_layers = std::min(config_.num_hidden_layers, kMaxHiddenLayers);
    const auto* list = metadata_.Find<std::vector<double>>(key);
    if (list == nullptr) {
      CRIA_ASSIGN_OR_RETURN(const float number, metadata_.Number(key));
      return std::vector<double>(num_layers, number);
    }
    if (list->size() == num_layers) return *list;
    return metadata_.Bad(key, Format("has {} entries, but block_count is {}", list->size(),
                                     config_.num_hidden_layers));
  }

  Status ReadXielu() {
    if (architecture_.hidden_act != HiddenAct::kXielu) return {};
    CRIA_ASSIGN_OR_RETURN(const std::vector<double> alpha_p, ReadXieluKey("alpha_p"));
    CRIA_ASSIGN_OR_RETURN(const std::vector<double> alpha_n, ReadXieluKey("alpha_n"));
    CRIA_ASSIGN_OR_RETURN(const std::vector<double> beta, ReadXieluKey("beta"));
    CRIA_ASSIGN_OR_RETURN(const std::vector<double> eps, ReadXieluKey("eps"));
    for (size_t i = 0; i < alpha_p.size(); ++i) {
      const auto numbers = XieluNumbersOf(alpha_p[i], alpha_n[i], static_cast<float>(beta[i]),
                                          static_cast<float>(eps[i]));
      config_.xielu.insert(config_.xielu.end(), numbers.begin(), numbers.end());
    }
    return {};
  }

  Status ReadScores() {
    if (!architecture_.has_sigmoid_scores) return {};
    constexpr uint32_t kSigmoid = 2;
    CRIA_ASSIGN_OR_RETURN(const uint32_t function, metadata_.Integer(Key("expert_gating_func")));
    if (function != kSigmoid) {
      return Unsupported("expert_gating_func", Format("is {}", function));
    }
    config_.scoring_func = ScoringFunc::kSigmoid;
    return {};
  }

  Status ReadExperts() {
    CRIA_ASSIGN_OR_RETURN(const uint32_t num_experts, metadata_.Integer(Key("expert_count"), 0));
    const bool is_always_mixture =
        architecture_.mixture == architecture_.hugging_face && !architecture_.has_mamba;
    if (num_experts == 0 && !is_always_mixture) return {};
    if (num_experts == 0 || (architecture_.mixture.empty() && !architecture_.is_gemma4)) {
      return Unsupported("expert_count", Format("is {}", num_experts));
    }
    config_.enable_moe_block = architecture_.is_gemma4;
    if (!architecture_.is_gemma4) config_.architecture = architecture_.mixture;
    config_.num_experts = num_experts;
    CRIA_ASSIGN_OR_RETURN(config_.num_experts_per_tok, metadata_.Integer(Key("expert_used_count")));
    CRIA_ASSIGN_OR_RETURN(
        config_.moe_intermediate_size,
        metadata_.Integer(Key("expert_feed_forward_length"), config_.intermediate_size));
    CRIA_ASSIGN_OR_RETURN(
        config_.norm_topk_prob,
        metadata_.Bool(Key("expert_weights_norm"), architecture_.normalizes_expert_weights));
    CRIA_RETURN_IF_ERROR(architecture_.is_gpt_oss
                             ? ReadGgufGptOss(metadata_, architecture_, config_)
                             : ReadScores());
    CRIA_ASSIGN_OR_RETURN(config_.shared_expert_intermediate_size,
                          metadata_.Integer(Key("expert_shared_feed_forward_length"), 0));
    if (config_.shared_expert_intermediate_size == 0) return {};
    config_.shared_expert_gate = architecture_.has_shared_expert_gate;
    if (!architecture_.shared_mixture.empty()) config_.architecture = architecture_.shared_mixture;
    if (config_.shared_expert_gate || !architecture_.shared_mixture.empty()) return {};
    return Unsupported("expert_shared_feed_forward_length", "gives a shared expert");
  }

  Status ReadHeadDim() {
    const uint32_t hidden_size = config_.hidden_size;
    const uint32_t heads = config_.num_attention_heads;
    if (metadata_.Has(Key("attention.key_length"))) {
      CRIA_ASSIGN_OR_RETURN(config_.head_dim, metadata_.Integer(Key("attention.key_length")));
    } else if (heads != 0 && hidden_size % heads == 0) {
      config_.head_dim = hidden_size / heads;
    } else {
      return metadata_.Bad(Key("attention.head_count"),
                           Format("is {}, which does not divide embedding_length {}, and "
                                  "attention.key_length is missing",
                                  heads, hidden_size));
    }
    if (architecture_.has_partial_rotary) {
      CRIA_ASSIGN_OR_RETURN(const uint32_t rotary_dim,
                            metadata_.Integer(Key("rope.dimension_count"), config_.head_dim));
      if (rotary_dim != config_.head_dim) config_.rotary_dim = rotary_dim;
    }
    for (const std::string_view name :
         {"attention.value_length", "rope.dimension_count", "attention.key_length_swa",
          "attention.value_length_swa", "rope.dimension_count_swa"}) {
      if (name == "rope.dimension_count" && architecture_.has_partial_rotary) continue;
      CRIA_ASSIGN_OR_RETURN(const uint32_t size, metadata_.Integer(Key(name), config_.head_dim));
      if (size != config_.head_dim) {
        return Unsupported(name, Format("is {}, but heads have {}", size, config_.head_dim));
      }
    }
    return {};
  }

  Status ReadLayerKinds() {
    CRIA_ASSIGN_OR_RETURN(
        LayerKind full, ReadGgufRope(metadata_, architecture_.name, config_.max_position_embeddings,
                                     architecture_.has_longrope));
    if (architecture_.is_gpt_oss) full.rope_scaling.truncate = false;
    LayerKind sliding = full;
    if (architecture_.sliding_rope_theta || !architecture_.sliding_has_rope_scaling) {
      sliding.rope_scaling = {};
    }
    const std::string window = Key("attention.sliding_window");
    // As in llama.cpp, gpt-oss's files must have it.
    CRIA_ASSIGN_OR_RETURN(sliding.sliding_window,
                          architecture_.is_gpt_oss
                              ? metadata_.Integer(window)
                              : metadata_.Integer(window, architecture_.sliding_window));
    CRIA_ASSIGN_OR_RETURN(
        sliding.rope_theta,
        metadata_.Number(Key("rope.freq_base_swa"),
                         architecture_.sliding_rope_theta.value_or(full.rope_theta)));
    CRIA_ASSIGN_OR_RETURN(const std::vector<bool> is_sliding,
                          ReadSlidingLayers(sliding.sliding_window != 0));
    bool has_rope = true;
    if (architecture_.has_rope_switch) {
      CRIA_ASSIGN_OR_RETURN(has_rope, metadata_.Bool(Key("rope.scaling.finetuned"), true));
    }
    const bool has_window = std::ranges::contains(is_sliding, true);
    if (has_window && !architecture_.with_windows.empty()) {
      config_.architecture = architecture_.with_windows;
    }
    std::vector<LayerKind> layers;
    for (uint32_t i = 0; i < is_sliding.size(); ++i) {
      const uint32_t interval = architecture_.no_rope_layer_interval;
      layers.push_back(is_sliding[i] ? sliding : full);
      layers.back().no_rope =
          (interval != 0 && (i + 1) % interval == 0) || !has_rope ||
          (architecture_.only_windows_have_rope && has_window && !is_sliding[i]);
      if (i < has_no_heads_.size() && has_no_heads_[i]) {
        layers.back() = {.rope_theta = full.rope_theta,
                         .no_rope = true,
                         .short_conv = architecture_.has_short_conv,
                         .mamba = architecture_.has_mamba};
      }
      if (i < is_linear_.size() && is_linear_[i]) {
        layers.back() = {.rope_theta = full.rope_theta, .no_rope = true, .linear_attention = true};
      }
    }
    if (architecture_.is_gemma4) {
      CRIA_RETURN_IF_ERROR(ReadGgufGemma4(metadata_, architecture_, is_sliding, config_, layers));
    }
    SetLayerKinds(std::move(layers), config_);
    return {};
  }

  // All except every `period`-th layer; all if it is 0.
  static std::vector<bool> AllButEvery(uint32_t period, uint32_t num_layers) {
    std::vector<bool> is_sliding(num_layers, true);
    for (uint32_t i = 0; i < num_layers; ++i) {
      is_sliding[i] = period == 0 || i % period != period - 1;
    }
    return is_sliding;
  }

  // Which layers have the window: as is usual for the architecture if the file does not say; as in
  // llama.cpp, a number n means all except every n-th layer.
  Result<std::vector<bool>> ReadSlidingLayers(bool has_window) const {
    const std::string key = Key("attention.sliding_window_pattern");
    // ValidateConfig refuses more layers.
    const uint32_t num_layers = std::min(config_.num_hidden_layers, kMaxHiddenLayers);
    std::vector<bool> is_sliding(num_layers, false);
    if (!metadata_.Has(key)) {
      return has_window ? AllButEvery(architecture_.sliding_window_pattern, num_layers)
                        : is_sliding;
    }
    if (const auto* flags = metadata_.Find<std::vector<bool>>(key)) {
      is_sliding = *flags;
    } else if (const auto* numbers = metadata_.Find<std::vector<int64_t>>(key)) {
      is_sliding.clear();
      for (const int64_t number : *numbers) {
        if (number != 0 && number != 1) {
          return metadata_.Bad(key, Format("has {}, but must have 0 or 1", number));
        }
        is_sliding.push_back(number == 1);
      }
    } else {
      CRIA_ASSIGN_OR_RETURN(const uint32_t period, metadata_.Integer(key));
      is_sliding = AllButEvery(period, num_layers);
    }
    if (is_sliding.size() != num_layers) {
      return metadata_.Bad(key, Format("has {} entries, but block_count is {}", is_sliding.size(),
                                       config_.num_hidden_layers));
    }
    if (has_window || !std::ranges::contains(is_sliding, true)) return is_sliding;
    return metadata_.Bad(key, Format("gives layers a window, but {} gives no window",
                                     Key("attention.sliding_window")));
  }

  const GgufMetadata& metadata_;
  const GgufArchitecture& architecture_;
  ModelConfig config_;
  // [layers], if the architecture has any, like the next one: layers with a short convolution or
  // Mamba.
  std::vector<bool> has_no_heads_;
  std::vector<bool> is_linear_;
};

}  // namespace

Result<ModelConfig> ReadGgufConfig(const GgufMetadata& metadata,
                                   const GgufArchitecture& architecture, uint32_t vocab_size) {
  return ConfigReader(metadata, architecture).Read(vocab_size);
}

Result<WeightFolding> ReadGgufFolding(const GgufMetadata& metadata,
                                      const GgufArchitecture& architecture,
                                      const ModelConfig& config) {
  WeightFolding folding;
  if (architecture.scales_embedding) folding.embedding_multiplier = std::sqrt(config.hidden_size);
  folding.has_unscaled_scores = architecture.is_gemma4;
  if (config.num_hidden_layers == architecture.layers_with_other_scores) {
    folding.score_factor = std::sqrt(
        config.head_dim / (static_cast<double>(config.hidden_size) / config.num_attention_heads));
  }
  struct Scale {
    std::string_view name;
    double* target;
  };
  double score_scale = 0.0;
  for (const Scale& scale : {Scale{"attention.scale", &score_scale},
                             Scale{"embedding_scale", &folding.embedding_multiplier},
                             Scale{"residual_scale", &folding.residual_multiplier},
                             Scale{"expert_weights_scale", &folding.routed_scaling_factor},
                             Scale{"logit_scale", &folding.logits_divisor}}) {
    const std::string key = Format("{}.{}", architecture.name, scale.name);
    if (!architecture.Uses(scale.name) || !metadata.Has(key)) continue;
    CRIA_ASSIGN_OR_RETURN(const float value, metadata.Number(key));
    if (!(value >= 0.0f && std::isfinite(value))) {
      return metadata.Bad(key, Format("is {}, but must be more than 0", value));
    }
    if (value > 0.0f) *scale.target = value;  // As in llama.cpp, 0 means that there is none.
  }
  if (score_scale > 0.0) folding.score_factor = score_scale * std::sqrt(config.head_dim);
  return folding;
}

}  // namespace cria
