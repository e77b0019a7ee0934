#include "reference/hugging_face_short_conv.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/rope_fields.h"

namespace cria::reference {
namespace {

using nlohmann::json;

void ReadCommon(const json& fields, size_t taps, ReferenceConfig& config) {
  config.rms_norm_eps = FieldOr(fields, "norm_eps", 1e-5);
  config.tie_word_embeddings = FieldOr(fields, "tie_word_embeddings", true);
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 8);
  config.qk_norm = true;
  config.conv_L_cache = FieldOr<size_t>(fields, "conv_L_cache", taps);
  config.conv_bias = FieldOr(fields, "conv_bias", false);
}

// rope_parameters has rope_theta in newer files.
void ReadSharedRope(const json& fields, ReferenceConfig& config) {
  config.rope_theta = FieldOr(fields, "rope_theta", 1e6);
  const json rope = FieldOr(fields, "rope_parameters", json());
  if (rope.is_null()) return;
  config.rope_theta = FieldOr(rope, "rope_theta", config.rope_theta);
  config.rope_scaling = ReadRopeScaling(rope);
}

void AddLayer(const std::string& type, ReferenceConfig& config) {
  ReferenceAttention layer = {config.rope_theta, config.rope_scaling, 0};
  layer.short_conv = type == "conv";
  config.layers.push_back(layer);
}

// The feed-forward is narrower than intermediate_size, which has an older name.
void ReadLfm2(const json& fields, ReferenceConfig& config) {
  ReadCommon(fields, 3, config);
  config.names = ReferenceNames::kLfm2;
  config.tie_word_embeddings = FieldOr(fields, "tie_embedding", config.tie_word_embeddings);
  ReadSharedRope(fields, config);
  auto width = FieldOr<size_t>(fields, "block_ff_dim", config.intermediate_size);
  if (FieldOr(fields, "block_auto_adjust_ff_dim", true)) {
    width = 2 * width / 3;
    const auto multiple = FieldOr<size_t>(fields, "block_multiple_of", 256);
    width = static_cast<size_t>(FieldOr(fields, "block_ffn_dim_multiplier", 1.0) *
                                static_cast<double>(width));
    width = (width + multiple - 1) / multiple * multiple;
  }
  config.intermediate_size = width;
  const json types = FieldOr(fields, "layer_types", json());
  const json indices = FieldOr(fields, "full_attn_idxs", json());
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    if (!types.is_null()) {
      AddLayer(types.at(i).get<std::string>(), config);
    } else {
      const bool attends =
          indices.is_null() || std::find(indices.begin(), indices.end(), i) != indices.end();
      AddLayer(attends ? "full_attention" : "conv", config);
    }
  }
}

void ReadLfm2Moe(const json& fields, ReferenceConfig& config) {
  ReadCommon(fields, 3, config);
  config.names = ReferenceNames::kLfm2;
  config.tie_word_embeddings = FieldOr(fields, "tie_embedding", config.tie_word_embeddings);
  ReadSharedRope(fields, config);
  for (const json& type : fields.at("layer_types")) AddLayer(type.get<std::string>(), config);
  config.experts = {.names = ReferenceExpertNames::kLfm2,
                    .num_experts = FieldOr<size_t>(fields, "num_experts", 32),
                    .num_experts_per_tok = FieldOr<size_t>(fields, "num_experts_per_tok", 4),
                    .intermediate_size = FieldOr<size_t>(fields, "moe_intermediate_size", 1792),
                    .norm_topk_prob = FieldOr(fields, "norm_topk_prob", true),
                    .has_sigmoid_scores = true,
                    .use_expert_bias = FieldOr(fields, "use_expert_bias", true),
                    .routed_scaling_factor = FieldOr(fields, "routed_scaling_factor", 1.0)};
  const auto num_dense = FieldOr<size_t>(fields, "num_dense_layers", 2);
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    config.experts.is_dense.push_back(i < num_dense);
  }
}

void ReadLfm3(const json& fields, ReferenceConfig& config) {
  ReadCommon(fields, 7, config);
  config.names = ReferenceNames::kLfm3;
  config.num_key_value_heads = FieldOr<size_t>(fields, "num_key_value_heads", 4);
  config.head_dim = FieldOr<size_t>(fields, "head_dim", 128);
  config.qkv_bias = config.o_bias = FieldOr(fields, "attention_bias", false);
  config.use_attention_gate = FieldOr(fields, "use_attention_gate", true);
  if (FieldOr(fields, "use_sandwich_norm", true)) config.norms = ReferenceNorms::kBoth;
  const auto window = FieldOr<size_t>(fields, "sliding_window", 256);
  const json types = FieldOr(fields, "layer_types", json());
  const json all_ropes = FieldOr(
      fields, "rope_parameters",
      json{{"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}},
           {"full_attention",
            {{"rope_type", "proportional"}, {"rope_theta", 1e6}, {"partial_rotary_factor", 0.5}}}});
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    std::string type = "conv";
    if (!types.is_null()) {
      type = types.at(i).get<std::string>();
    } else if (i % 4 == 2) {
      type = "full_attention";
    } else if (i % 4 == 0 && i > 0) {
      type = "sliding_attention";
    }
    AddLayer(type, config);
    if (type == "conv") continue;
    const json& rope = all_ropes.at(type);
    config.layers.back().rope_theta = FieldOr(rope, "rope_theta", 1e6);
    config.layers.back().rope_scaling = ReadRopeScaling(rope);
    if (type == "sliding_attention") config.layers.back().sliding_window = window;
  }
}

}  // namespace

bool ReadShortConvFamily(const json& fields, ReferenceConfig& config) {
  if (config.architecture == "Lfm2ForCausalLM") {
    ReadLfm2(fields, config);
  } else if (config.architecture == "Lfm2MoeForCausalLM") {
    ReadLfm2Moe(fields, config);
  } else if (config.architecture == "Lfm3ForCausalLM") {
    ReadLfm3(fields, config);
  } else {
    return false;
  }
  return true;
}

}  // namespace cria::reference
