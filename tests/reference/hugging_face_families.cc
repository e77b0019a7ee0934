#include "reference/hugging_face_families.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "reference/rope_fields.h"

namespace cria::reference {
namespace {

using nlohmann::json;

ReferenceActivation ActivationOf(const std::string& name) {
  if (name == "silu") return ReferenceActivation::kSilu;
  if (name == "gelu") return ReferenceActivation::kGelu;
  if (name == "gelu_pytorch_tanh") return ReferenceActivation::kGeluTanh;
  throw std::runtime_error("unknown activation " + name);
}

// layer_types, or else what `has_window` says of each layer.
template <typename HasWindow>
void SetLayers(const json& fields, ReferenceConfig& config, size_t window,
               const HasWindow& has_window) {
  const json types = FieldOr(fields, "layer_types", json());
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    const bool is_windowed = types.is_null() ? has_window(i) : types.at(i) == "sliding_attention";
    config.layers.push_back({config.rope_theta, config.rope_scaling, is_windowed ? window : 0});
  }
  config.sliding_window = 0;
}

void SetBiases(const json& fields, bool has_mlp_bias, ReferenceConfig& config) {
  config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", false);
  config.mlp_bias = has_mlp_bias && FieldOr(fields, "mlp_bias", false);
}

// What all generations of Gemma have: weights w of norms mean 1 + w, and embeddings are multiplied
// by the root of their size.
void ReadGemma(const json& fields, const char* activation, ReferenceConfig& config) {
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 256);
  config.tie_word_embeddings = FieldOr(fields, "tie_word_embeddings", true);
  config.norm_weight_offset = 1.0;
  config.embedding_multiplier = std::sqrt(static_cast<double>(config.hidden_size));
  config.activation = ActivationOf(FieldOr<std::string>(fields, activation, "gelu_pytorch_tanh"));
  // The first generation's releases say "gelu" where they mean the approximation; the class changes
  // this word alone.
  const bool is_first = config.architecture == "GemmaForCausalLM";
  if (is_first && config.activation == ReferenceActivation::kGelu) {
    config.activation = ReferenceActivation::kGeluTanh;
  }
  SetBiases(fields, false, config);
}

void ReadGemma2And3(const json& fields, ReferenceConfig& config) {
  ReadGemma(fields, "hidden_activation", config);
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 4);
  config.norms = ReferenceNorms::kBoth;
  config.score_scale = 1.0 / std::sqrt(FieldOr(fields, "query_pre_attn_scalar", 256.0));
}

// A cap that is null is absent, and one that is not there has the class's default.
double CapOr(const json& fields, const char* name, double fallback) {
  const auto found = fields.find(name);
  if (found == fields.end()) return fallback;
  return found->is_null() ? 0.0 : found->get<double>();
}

void ReadGemma2(const json& fields, ReferenceConfig& config) {
  ReadGemma2And3(fields, config);
  config.attn_logit_softcapping = CapOr(fields, "attn_logit_softcapping", 50.0);
  config.final_logit_softcapping = CapOr(fields, "final_logit_softcapping", 30.0);
  SetLayers(fields, config, FieldOr<size_t>(fields, "sliding_window", 4096),
            [](size_t layer) { return layer % 2 == 0; });
}

// Layers with windows have frequencies of their own.
void ReadGemma3(const json& fields, ReferenceConfig& config) {
  ReadGemma2And3(fields, config);
  config.qk_norm = true;
  config.final_logit_softcapping = CapOr(fields, "final_logit_softcapping", 0.0);
  const auto pattern = FieldOr<size_t>(fields, "sliding_window_pattern", 6);
  config.rope_theta = FieldOr(fields, "rope_theta", 1e6);
  SetLayers(fields, config, FieldOr<size_t>(fields, "sliding_window", 4096),
            [&](size_t layer) { return (layer + 1) % pattern != 0; });
  const json parameters = FieldOr(fields, "rope_parameters", json());
  for (ReferenceAttention& layer : config.layers) {
    const bool is_windowed = layer.sliding_window != 0;
    if (!parameters.is_null()) {
      const json& rope = parameters.at(is_windowed ? "sliding_attention" : "full_attention");
      layer.rope_theta = rope.at("rope_theta").get<double>();
      layer.rope_scaling = ReadRopeScaling(rope);
    } else if (is_windowed) {
      layer.rope_theta = FieldOr(fields, "rope_local_base_freq", 1e4);
      layer.rope_scaling = {};
    }
  }
}

void ReadPhi3(const json& fields, ReferenceConfig& config) {
  config.fused_projections = true;
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  const auto turned = static_cast<size_t>(static_cast<double>(config.head_dim) *
                                          FieldOr(fields, "partial_rotary_factor", 1.0));
  if (turned != config.head_dim) config.rotary_dim = turned;
  ReferenceRopeScaling& scaling = config.rope_scaling;
  if (scaling.type == ReferenceRopeScaling::Type::kLongrope) {
    scaling.original_max_position_embeddings =
        FieldOr<size_t>(fields, "original_max_position_embeddings", 4096);
    const auto original = static_cast<double>(scaling.original_max_position_embeddings);
    const double stretch = static_cast<double>(config.max_position_embeddings) / original;
    // Ding et al. 2024, as the class has it; a context that is not longer has no factor.
    if (stretch > 1.0) {
      scaling.attention_factor = std::sqrt(1.0 + std::log(stretch) / std::log(original));
    }
  }
  SetLayers(fields, config, FieldOr<size_t>(fields, "sliding_window", 0),
            [](size_t) { return true; });
}

// Windows, if there are any, are in the layers without rope.
void ReadSmolLm3(const json& fields, ReferenceConfig& config) {
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 4);
  config.tie_word_embeddings = FieldOr(fields, "tie_word_embeddings", true);
  config.rope_theta = FieldOr(fields, "rope_theta", 2e6);
  SetBiases(fields, true, config);
  const auto interval = FieldOr<size_t>(fields, "no_rope_layer_interval", 4);
  const json turned = FieldOr(fields, "no_rope_layers", json());
  const auto has_no_rope = [&](size_t layer) {
    return turned.is_null() ? (layer + 1) % interval == 0 : turned.at(layer).get<int>() == 0;
  };
  const bool uses_windows = FieldOr(fields, "use_sliding_window", false);
  const size_t window = FieldOr<size_t>(fields, "sliding_window", 0);
  SetLayers(fields, config, window,
            [&](size_t layer) { return uses_windows && has_no_rope(layer); });
  for (size_t i = 0; i < config.layers.size(); ++i) config.layers[i].no_rope = has_no_rope(i);
}

void ReadGranite(const json& fields, ReferenceConfig& config) {
  SetBiases(fields, true, config);
  config.embedding_multiplier = FieldOr(fields, "embedding_multiplier", 1.0);
  config.score_scale = FieldOr(fields, "attention_multiplier", 1.0);
  config.residual_multiplier = FieldOr(fields, "residual_multiplier", 1.0);
  config.logits_scaling = FieldOr(fields, "logits_scaling", 1.0);
}

void ReadOlmo2(const json& fields, ReferenceConfig& config) {
  SetBiases(fields, false, config);
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.norms = ReferenceNorms::kAfter;
  config.joint_qk_norm = true;
}

}  // namespace

bool ReadFamily(const json& fields, ReferenceConfig& config) {
  const std::string& architecture = config.architecture;
  if (architecture == "GemmaForCausalLM") {
    ReadGemma(fields, "hidden_act", config);
  } else if (architecture == "Gemma2ForCausalLM") {
    ReadGemma2(fields, config);
  } else if (architecture.starts_with("Gemma3For")) {
    ReadGemma3(fields, config);
  } else if (architecture == "Phi3ForCausalLM") {
    ReadPhi3(fields, config);
  } else if (architecture == "SmolLM3ForCausalLM") {
    ReadSmolLm3(fields, config);
  } else if (architecture == "GraniteForCausalLM") {
    ReadGranite(fields, config);
  } else if (architecture == "Olmo2ForCausalLM") {
    ReadOlmo2(fields, config);
  } else {
    return false;
  }
  return true;
}

}  // namespace cria::reference
