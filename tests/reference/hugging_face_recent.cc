#include "reference/hugging_face_recent.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "reference/rope_fields.h"

namespace cria::reference {
namespace {

using nlohmann::json;

// The parameters of rope, which may have the older name.
json RopeOf(const json& fields) {
  return FieldOr(fields, "rope_parameters", FieldOr(fields, "rope_scaling", json()));
}

// All layers are alike.
void SetLayers(ReferenceConfig& config) {
  config.layers.assign(config.num_hidden_layers,
                       {config.rope_theta, config.rope_scaling, config.sliding_window});
  config.sliding_window = 0;
}

void ReadMinistral3(const json& fields, ReferenceConfig& config) {
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 8);
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 128);
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.sliding_window = FieldOr<size_t>(fields, "sliding_window", 0);
  const json rope = RopeOf(fields);
  config.rope_theta = rope.at("rope_theta").get<double>();
  config.rope_scaling = ReadRopeScaling(rope);
  config.query_scale_beta = rope.at("llama_4_scaling_beta").get<double>();
  config.query_scale_positions = rope.at("original_max_position_embeddings").get<size_t>();
  SetLayers(config);
}

void SetAttentionBias(const json& fields, ReferenceConfig& config) {
  config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", false);
}

void ReadMambaSizes(const json& fields, ReferenceConfig& config) {
  const auto heads = FieldOr<size_t>(fields, "mamba_n_heads", 128);
  config.mamba = {
      .conv_kernel = FieldOr<size_t>(fields, "mamba_d_conv", 4),
      .state_size = FieldOr<size_t>(fields, "mamba_d_state", 256),
      .head_dim = FieldOr<size_t>(fields, "mamba_expand", 2) * config.hidden_size / heads,
      .num_heads = heads,
      .num_groups = FieldOr<size_t>(fields, "mamba_n_groups", 1),
      .conv_bias = FieldOr(fields, "mamba_conv_bias", true),
      .proj_bias = FieldOr(fields, "mamba_proj_bias", false)};
}

// With 0 experts, the shared expert is the feed-forward.
void ReadGraniteHybrid(const json& fields, ReferenceConfig& config) {
  const auto experts = FieldOr<size_t>(fields, "num_local_experts", 8);
  const auto shared = fields.at("shared_intermediate_size").get<size_t>();
  if (experts != 0) {
    config.experts = {.names = ReferenceExpertNames::kGranite,
                      .num_experts = experts,
                      .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", 2),
                      .intermediate_size = config.intermediate_size,
                      .norm_topk_prob = true,
                      .shared_intermediate_size = shared,
                      .is_dense = std::vector<bool>(config.num_hidden_layers, false)};
  }
  config.intermediate_size = shared;
  config.embedding_multiplier = FieldOr(fields, "embedding_multiplier", 1.0);
  config.score_scale = FieldOr(fields, "attention_multiplier", 1.0);
  config.residual_multiplier = FieldOr(fields, "residual_multiplier", 1.0);
  config.logits_scaling = FieldOr(fields, "logits_scaling", 1.0);
  config.fused_projections = config.split_queries = true;
  config.modules = {{"mlp.gate_up_proj", "shared_mlp.input_linear"},
                    {"mlp.down_proj", "shared_mlp.output_linear"}};
  SetAttentionBias(fields, config);
  SetLayers(config);
  const bool has_rope = FieldOr<std::string>(fields, "position_embedding_type", "") == "rope";
  ReadMambaSizes(fields, config);
  const json types = fields.contains("layer_types") ? fields.at("layer_types")
                                                    : FieldOr(fields, "layers_block_type", json());
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    ReferenceAttention& layer = config.layers.at(i);
    layer.no_rope = !has_rope;
    layer.mamba = types.is_null() || types.at(i) == "mamba" || types.at(i) == "linear_attention";
  }
}

// Whether each layer has a window: as layer_types says, or all but every n-th.
std::vector<bool> Windows(const json& fields, size_t num_layers, size_t pattern) {
  const json types = FieldOr(fields, "layer_types", json());
  std::vector<bool> has_window;
  for (size_t i = 0; i < num_layers; ++i) {
    has_window.push_back(types.is_null() ? (i + 1) % pattern != 0
                                         : types.at(i) == "sliding_attention");
  }
  return has_window;
}

// In the older form, layers with a window have frequencies that are not scaled.
void ReadOlmo3(const json& fields, ReferenceConfig& config) {
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.norms = ReferenceNorms::kAfter;
  config.joint_qk_norm = true;
  SetAttentionBias(fields, config);
  const json parameters = FieldOr(fields, "rope_parameters", json());
  for (const bool has_window : Windows(fields, config.num_hidden_layers, 4)) {
    ReferenceAttention layer;
    if (has_window) layer.sliding_window = FieldOr<size_t>(fields, "sliding_window", 4096);
    if (parameters.is_null()) {
      layer.rope_theta = has_window ? 5e5 : FieldOr(fields, "rope_theta", 5e5);
      if (!has_window) layer.rope_scaling = config.rope_scaling;
    } else {
      const json& rope = parameters.at(has_window ? "sliding_attention" : "full_attention");
      layer.rope_theta = FieldOr(rope, "rope_theta", 5e5);
      layer.rope_scaling = ReadRopeScaling(rope);
    }
    config.layers.push_back(layer);
  }
}

void ReadExaone4(const json& fields, ReferenceConfig& config) {
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.norms = ReferenceNorms::kAfter;
  config.qk_norm = true;
  const auto window = FieldOr<size_t>(fields, "sliding_window", 0);
  const size_t pattern =
      fields.contains("layer_types") ? 1 : FieldOr<size_t>(fields, "sliding_window_pattern", 4);
  for (const bool has_window : Windows(fields, config.num_hidden_layers, pattern)) {
    config.layers.push_back({config.rope_theta, config.rope_scaling, has_window ? window : 0});
    config.layers.back().no_rope = window != 0 && !has_window;
  }
}

void ReadGptOss(const json& fields, ReferenceConfig& config) {
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 8);
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 64);
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", true);
  config.has_sinks = true;
  config.swiglu_alpha = FieldOr(fields, "swiglu_alpha", 1.702);
  config.swiglu_limit = FieldOr(fields, "swiglu_limit", 7.0);
  config.experts = {.names = ReferenceExpertNames::kGptOss,
                    .num_experts = FieldOr<size_t>(fields, "num_local_experts", 128),
                    .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", 4),
                    .intermediate_size = config.intermediate_size,
                    .norm_topk_prob = true,
                    .is_dense = std::vector<bool>(config.num_hidden_layers, false)};
  const json rope = RopeOf(fields);
  config.rope_theta = FieldOr(rope, "rope_theta", FieldOr(fields, "rope_theta", 150000.0));
  config.rope_scaling = ReadRopeScaling(rope);
  const auto window = FieldOr<size_t>(fields, "sliding_window", 128);
  for (const bool has_window : Windows(fields, config.num_hidden_layers, 2)) {
    config.layers.push_back({config.rope_theta, config.rope_scaling, has_window ? window : 0});
  }
}

void ReadErnie(const json& fields, ReferenceConfig& config) {
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 2);
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 128);
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.tie_word_embeddings = FieldOr(fields, "tie_word_embeddings", true);
  config.rope_theta = FieldOr(fields, "rope_theta", 5e5);
  config.qkv_bias = config.o_bias = config.mlp_bias = FieldOr(fields, "use_bias", false);
  config.turns_neighbours = true;
  SetLayers(config);
}

void ReadSeedOss(const json& fields, ReferenceConfig& config) {
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 128);
  config.qkv_bias = FieldOr(fields, "attention_bias", true);
  config.o_bias = FieldOr(fields, "attention_out_bias", false);
  config.mlp_bias = FieldOr(fields, "mlp_bias", false);
  SetLayers(config);
}

// With alpha, "dynamic" frequencies are those of a base that alpha stretches once and for all.
void ReadHunyuan(const json& fields, ReferenceConfig& config) {
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.qk_norm = config.norms_after_rope = true;
  SetAttentionBias(fields, config);
  config.modules = {{"self_attn.q_norm", "self_attn.query_layernorm"},
                    {"self_attn.k_norm", "self_attn.key_layernorm"}};
  const json rope = RopeOf(fields);
  const double alpha = rope.is_null() ? 0.0 : FieldOr(rope, "alpha", 0.0);
  if (alpha != 0.0) {
    const auto d = static_cast<double>(config.head_dim);
    config.rope_theta *= std::pow(alpha, d / (d - 2.0));
    config.rope_scaling = {};
  }
  SetLayers(config);
}

void ReadArcee(const json& fields, ReferenceConfig& config) {
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.has_gate = false;
  config.activation = ReferenceActivation::kSquaredRelu;
  config.mlp_bias = FieldOr(fields, "mlp_bias", false);
  if (const json rope = RopeOf(fields); !rope.is_null()) {
    config.rope_theta = FieldOr(rope, "rope_theta", config.rope_theta);
    config.rope_scaling = ReadRopeScaling(rope);
  }
  SetAttentionBias(fields, config);
  SetLayers(config);
}

void ReadApertus(const json& fields, ReferenceConfig& config) {
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.has_gate = false;
  config.activation = ReferenceActivation::kXielu;
  config.qk_norm = true;
  config.modules = {{"input_layernorm", "attention_layernorm"},
                    {"post_attention_layernorm", "feedforward_layernorm"}};
  SetAttentionBias(fields, config);
  const json rope = RopeOf(fields);
  if (rope.is_null()) {
    config.rope_theta = 12e6;
    config.rope_scaling = {.type = ReferenceRopeScaling::Type::kLlama3,
                           .factor = 8.0,
                           .original_max_position_embeddings = 8192};
  } else {
    config.rope_theta = FieldOr(rope, "rope_theta", FieldOr(fields, "rope_theta", 12e6));
    config.rope_scaling = ReadRopeScaling(rope);
  }
  SetLayers(config);
}

// Reads what GLM and GLM-4 differ in from Llama.
void ReadGlm(const json& fields, ReferenceConfig& config) {
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 128);
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1.5625e-7);
  config.qkv_bias = FieldOr(fields, "attention_bias", true);
  config.fused_projections = config.split_queries = true;
  config.turns_neighbours = true;
  config.rotary_dim = static_cast<size_t>(static_cast<double>(config.head_dim) *
                                          FieldOr(fields, "partial_rotary_factor", 0.5));
  SetLayers(config);
  if (config.architecture == "GlmForCausalLM") return;
  config.norms = ReferenceNorms::kBoth;
  config.modules = {{"post_attention_layernorm", "post_self_attn_layernorm"},
                    {"pre_feedforward_layernorm", "post_attention_layernorm"},
                    {"post_feedforward_layernorm", "post_mlp_layernorm"}};
}

}  // namespace

bool ReadRecentFamily(const json& fields, ReferenceConfig& config) {
  if (config.architecture == "Ministral3ForCausalLM") {
    ReadMinistral3(fields, config);
  } else if (config.architecture == "GraniteMoeHybridForCausalLM") {
    ReadGraniteHybrid(fields, config);
  } else if (config.architecture == "GptOssForCausalLM") {
    ReadGptOss(fields, config);
  } else if (config.architecture == "Olmo3ForCausalLM") {
    ReadOlmo3(fields, config);
  } else if (config.architecture == "Exaone4ForCausalLM") {
    ReadExaone4(fields, config);
  } else if (config.architecture == "Ernie4_5ForCausalLM") {
    ReadErnie(fields, config);
  } else if (config.architecture == "SeedOssForCausalLM") {
    ReadSeedOss(fields, config);
  } else if (config.architecture == "HunYuanDenseV1ForCausalLM") {
    ReadHunyuan(fields, config);
  } else if (config.architecture == "ArceeForCausalLM") {
    ReadArcee(fields, config);
  } else if (config.architecture == "ApertusForCausalLM") {
    ReadApertus(fields, config);
  } else if (config.architecture == "GlmForCausalLM" || config.architecture == "Glm4ForCausalLM") {
    ReadGlm(fields, config);
  } else {
    return false;
  }
  return true;
}

std::string ArchitectureWithin(const json& text) {
  const auto type = text.at("model_type").get<std::string>();
  if (type == "llama") return "LlamaForCausalLM";
  if (type == "mistral") return "MistralForCausalLM";
  if (type == "ministral3") return "Ministral3ForCausalLM";
  if (type == "qwen2") return "Qwen2ForCausalLM";
  if (type == "qwen3") return "Qwen3ForCausalLM";
  throw std::runtime_error("unknown model_type " + type);
}

}  // namespace cria::reference
