#include "converter/gguf/gguf_config.h"

#include <algorithm>
#include <array>
#include <format>
#include <string>
#include <vector>

#include "converter/gguf/gguf_rope.h"
#include "converter/input/list_names.h"
#include "converter/layer_kinds.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr std::array kGgufArchitectures = {
    // Mistral's files have this architecture, too.
    GgufArchitecture{.name = "llama", .hugging_face = "LlamaForCausalLM", .is_interleaved = true},
    GgufArchitecture{.name = "qwen2", .hugging_face = "Qwen2ForCausalLM", .qkv_bias = true},
    GgufArchitecture{.name = "qwen3", .hugging_face = "Qwen3ForCausalLM", .qk_norm = true},
};

// Keys of related models that change the computation. If they are absent, 0, false or have this
// value, the computation is Llama's.
struct NeutralKey {
  std::string_view name;
  double neutral = 0.0;
};
constexpr std::array kNeutralKeys = {
    NeutralKey{"expert_count"},
    NeutralKey{"use_parallel_residual"},
    NeutralKey{"logit_scale", 1.0},
    NeutralKey{"residual_scale", 1.0},
    NeutralKey{"embedding_scale", 1.0},
    NeutralKey{"attention.scale"},
    NeutralKey{"attention.clamp_kqv"},
    NeutralKey{"attention.max_alibi_bias"},
    NeutralKey{"attention.temperature_length"},
    NeutralKey{"attn_logit_softcapping"},
    NeutralKey{"final_logit_softcapping"},
};

class ConfigReader {
 public:
  ConfigReader(const GgufMetadata& metadata, const GgufArchitecture& architecture)
      : metadata_(metadata), architecture_(architecture) {}

  Result<ModelConfig> Read(uint32_t vocab_size) {
    for (const NeutralKey& key : kNeutralKeys) CRIA_RETURN_IF_ERROR(RefuseUnlessNeutral(key));
    CRIA_ASSIGN_OR_RETURN(const bool is_causal, metadata_.Bool(Key("attention.causal"), true));
    if (!is_causal) return Unsupported("attention.causal", "is false");
    config_.architecture = architecture_.hugging_face;
    config_.vocab_size = vocab_size;
    config_.qkv_bias = architecture_.qkv_bias;
    config_.qk_norm = architecture_.qk_norm;
    CRIA_RETURN_IF_ERROR(ReadSizes());
    CRIA_RETURN_IF_ERROR(ReadHeadDim());
    CRIA_ASSIGN_OR_RETURN(config_.rms_norm_eps,
                          metadata_.Number(Key("attention.layer_norm_rms_epsilon")));
    CRIA_RETURN_IF_ERROR(ReadLayerKinds());
    return config_;
  }

 private:
  std::string Key(std::string_view name) const {
    return std::format("{}.{}", architecture_.name, name);
  }

  std::unexpected<Error> Unsupported(std::string_view name, std::string_view what) const {
    return metadata_.Bad(Key(name), std::format("{}, which this version does not support", what),
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
      CRIA_ASSIGN_OR_RETURN(*size.field, metadata_.Integer(Key(size.name)));
    }
    CRIA_ASSIGN_OR_RETURN(
        config_.num_key_value_heads,
        metadata_.Integer(Key("attention.head_count_kv"), config_.num_attention_heads));
    return {};
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
                           std::format("is {}, which does not divide embedding_length {}, and "
                                       "attention.key_length is missing",
                                       heads, hidden_size));
    }
    for (const std::string_view name :
         {"attention.value_length", "rope.dimension_count", "attention.key_length_swa",
          "attention.value_length_swa", "rope.dimension_count_swa"}) {
      CRIA_ASSIGN_OR_RETURN(const uint32_t size, metadata_.Integer(Key(name), config_.head_dim));
      if (size != config_.head_dim) {
        return Unsupported(name, std::format("is {}, but heads have {}", size, config_.head_dim));
      }
    }
    return {};
  }

  Status ReadLayerKinds() {
    AttentionKinds kinds;
    CRIA_ASSIGN_OR_RETURN(
        kinds.full, ReadGgufRope(metadata_, architecture_.name, config_.max_position_embeddings));
    kinds.sliding = kinds.full;
    CRIA_ASSIGN_OR_RETURN(kinds.sliding.sliding_window,
                          metadata_.Integer(Key("attention.sliding_window"), 0));
    CRIA_ASSIGN_OR_RETURN(kinds.sliding.rope_theta,
                          metadata_.Number(Key("rope.freq_base_swa"), kinds.full.rope_theta));
    CRIA_ASSIGN_OR_RETURN(const std::vector<bool> is_sliding,
                          ReadSlidingLayers(kinds.sliding.sliding_window != 0));
    SetLayerKinds(kinds, is_sliding, config_);
    return {};
  }

  // Which layers have the window: all if the file does not say; as in llama.cpp, a number n means
  // all except every n-th layer.
  Result<std::vector<bool>> ReadSlidingLayers(bool has_window) const {
    const std::string key = Key("attention.sliding_window_pattern");
    // ValidateConfig refuses more layers.
    const uint32_t num_layers = std::min(config_.num_hidden_layers, kMaxHiddenLayers);
    std::vector<bool> is_sliding(num_layers, has_window);
    if (!metadata_.Has(key)) return is_sliding;
    if (const auto* flags = metadata_.Find<std::vector<bool>>(key)) {
      is_sliding = *flags;
    } else if (const auto* numbers = metadata_.Find<std::vector<int64_t>>(key)) {
      is_sliding.clear();
      for (const int64_t number : *numbers) {
        if (number != 0 && number != 1) {
          return metadata_.Bad(key, std::format("has {}, but must have 0 or 1", number));
        }
        is_sliding.push_back(number == 1);
      }
    } else {
      CRIA_ASSIGN_OR_RETURN(const uint32_t period, metadata_.Integer(key));
      for (uint32_t i = 0; i < num_layers; ++i) {
        is_sliding[i] = period == 0 || i % period != period - 1;
      }
    }
    if (is_sliding.size() != num_layers) {
      return metadata_.Bad(key, std::format("has {} entries, but block_count is {}",
                                            is_sliding.size(), config_.num_hidden_layers));
    }
    if (has_window || !std::ranges::contains(is_sliding, true)) return is_sliding;
    return metadata_.Bad(key, std::format("gives layers a window, but {} gives no window",
                                          Key("attention.sliding_window")));
  }

  const GgufMetadata& metadata_;
  const GgufArchitecture& architecture_;
  ModelConfig config_;
};

}  // namespace

Result<GgufArchitecture> ReadGgufArchitecture(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.architecture";
  CRIA_ASSIGN_OR_RETURN(const std::string name, metadata.String(kKey));
  const auto* found = std::ranges::find(kGgufArchitectures, name, &GgufArchitecture::name);
  if (found != kGgufArchitectures.end()) return *found;
  return metadata.Bad(kKey,
                      std::format("is \"{}\"; this version converts {}", Quotable(name),
                                  ListNames(kGgufArchitectures, &GgufArchitecture::name)),
                      ErrorCode::kUnsupported);
}

Result<ModelConfig> ReadGgufConfig(const GgufMetadata& metadata,
                                   const GgufArchitecture& architecture, uint32_t vocab_size) {
  return ConfigReader(metadata, architecture).Read(vocab_size);
}

}  // namespace cria
