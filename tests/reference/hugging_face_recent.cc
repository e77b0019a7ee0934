#include "reference/hugging_face_recent.h"

#include <stdexcept>

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

// Of those without experts, where all layers attend.
void ReadGraniteHybrid(const json& fields, ReferenceConfig& config) {
  config.intermediate_size = fields.at("shared_intermediate_size").get<size_t>();
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
  for (ReferenceAttention& layer : config.layers) layer.no_rope = !has_rope;
}

}  // namespace

bool ReadRecentFamily(const json& fields, ReferenceConfig& config) {
  if (config.architecture == "Ministral3ForCausalLM") {
    ReadMinistral3(fields, config);
  } else if (config.architecture == "GraniteMoeHybridForCausalLM") {
    ReadGraniteHybrid(fields, config);
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
