#include "reference/hugging_face_mixtures.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "reference/rope_fields.h"

namespace cria::reference {
namespace {

using nlohmann::json;

void ReadMixtral(const json& fields, ReferenceConfig& config) {
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 8);
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.rope_theta = FieldOr(fields, "rope_theta", 1e6);
  config.sliding_window = FieldOr<size_t>(fields, "sliding_window", 0);
  config.experts = {.names = ReferenceExpertNames::kMixtral,
                    .num_experts = FieldOr<size_t>(fields, "num_local_experts", 8),
                    .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", 2),
                    .intermediate_size = config.intermediate_size,
                    .norm_topk_prob = true};
}

// A layer has experts if its number, counted from 1, is a multiple of the step, and the list of
// dense ones does not have it, counted from 0.
void ReadDenseLayers(const json& fields, ReferenceConfig& config) {
  const auto step = FieldOr<size_t>(fields, "decoder_sparse_step", 1);
  const auto only_dense = FieldOr(fields, "mlp_only_layers", std::vector<size_t>());
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    const bool is_listed = std::find(only_dense.begin(), only_dense.end(), i) != only_dense.end();
    config.experts.is_dense.push_back(is_listed || (i + 1) % step != 0);
  }
}

void ReadQwenMoe(const json& fields, ReferenceConfig& config) {
  const bool is_second = config.architecture == "Qwen2MoeForCausalLM";
  if (FieldOr(fields, "use_sliding_window", false)) {
    throw std::runtime_error("windows of Qwen's mixtures are unknown");
  }
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", is_second ? 16 : 4);
  config.experts = {
      .num_experts = FieldOr<size_t>(fields, "num_experts", is_second ? 60 : 128),
      .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", is_second ? 4 : 8),
      .intermediate_size = FieldOr<size_t>(fields, "moe_intermediate_size", is_second ? 1408 : 768),
      .norm_topk_prob = FieldOr(fields, "norm_topk_prob", false)};
  if (is_second) {
    config.qkv_bias = FieldOr(fields, "qkv_bias", true);
    config.experts.shared_intermediate_size =
        FieldOr<size_t>(fields, "shared_expert_intermediate_size", 5632);
  } else {
    config.qk_norm = true;
    config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", false);
  }
  ReadDenseLayers(fields, config);
}

void ReadOlmoe(const json& fields, ReferenceConfig& config) {
  if (!FieldOr(fields, "clip_qkv", json()).is_null()) {
    throw std::runtime_error("clip_qkv is unknown");
  }
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-5);
  config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", false);
  config.joint_qk_norm = true;
  config.experts = {.num_experts = FieldOr<size_t>(fields, "num_experts", 64),
                    .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", 8),
                    .intermediate_size = config.intermediate_size,
                    .norm_topk_prob = FieldOr(fields, "norm_topk_prob", false)};
}

void ReadGraniteMoe(const json& fields, ReferenceConfig& config) {
  config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", false);
  config.embedding_multiplier = FieldOr(fields, "embedding_multiplier", 1.0);
  config.score_scale = FieldOr(fields, "attention_multiplier", 1.0);
  config.residual_multiplier = FieldOr(fields, "residual_multiplier", 1.0);
  config.logits_scaling = FieldOr(fields, "logits_scaling", 1.0);
  config.experts = {.names = ReferenceExpertNames::kGranite,
                    .num_experts = FieldOr<size_t>(fields, "num_local_experts", 8),
                    .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", 2),
                    .intermediate_size = config.intermediate_size,
                    .norm_topk_prob = true};
  if (config.architecture == "GraniteMoeSharedForCausalLM") {
    config.experts.shared_intermediate_size =
        FieldOr<size_t>(fields, "shared_intermediate_size", 0);
  }
}

}  // namespace

bool ReadMixture(const json& fields, ReferenceConfig& config) {
  const std::string& architecture = config.architecture;
  if (architecture == "MixtralForCausalLM") {
    ReadMixtral(fields, config);
  } else if (architecture == "Qwen2MoeForCausalLM" || architecture == "Qwen3MoeForCausalLM") {
    ReadQwenMoe(fields, config);
  } else if (architecture == "OlmoeForCausalLM") {
    ReadOlmoe(fields, config);
  } else if (architecture == "GraniteMoeForCausalLM" ||
             architecture == "GraniteMoeSharedForCausalLM") {
    ReadGraniteMoe(fields, config);
  } else {
    return false;
  }
  config.experts.is_dense.resize(config.num_hidden_layers, false);
  return true;
}

}  // namespace cria::reference
