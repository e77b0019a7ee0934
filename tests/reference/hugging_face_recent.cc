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

}  // namespace

bool ReadRecentFamily(const json& fields, ReferenceConfig& config) {
  if (config.architecture == "Ministral3ForCausalLM") {
    ReadMinistral3(fields, config);
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
