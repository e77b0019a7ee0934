#include "support/gpt_oss_family.h"

#include <nlohmann/json.hpp>

#include "support/family_sizes.h"

namespace cria::support {
namespace {

using nlohmann::json;

// Activations are often at the limits.
json GptOss() {
  return Merged(Sizes("GptOssForCausalLM", "gpt_oss", 4),
                {{"head_dim", 16},
                 {"rms_norm_eps", 1e-5},
                 {"intermediate_size", 48},
                 {"sliding_window", 12},
                 {"num_local_experts", 8},
                 {"num_experts_per_tok", 3},
                 {"attention_bias", true},
                 {"swiglu_limit", 1.5},
                 {"tie_word_embeddings", false},
                 {"rope_theta", 150000.0},
                 {"rope_scaling",
                  {{"rope_type", "yarn"},
                   {"factor", 32.0},
                   {"beta_fast", 32.0},
                   {"beta_slow", 1.0},
                   {"truncate", false},
                   {"original_max_position_embeddings", 32}}}});
}

json GptOssOther() {
  json fields = GptOss();
  fields.erase("rope_scaling");
  fields.erase("rope_theta");
  return Merged(fields,
                {{"layer_types",
                  {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}},
                 {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
                 {"attention_bias", false},
                 {"num_key_value_heads", 4},
                 {"swiglu_alpha", 1.2},
                 {"swiglu_limit", 7.0},
                 {"num_experts_per_tok", 1},
                 {"tie_word_embeddings", true}});
}

// These fields are such that GGUF files can say the same.
json GptOssMxfp4() {
  json fields = GptOss();
  json rope = fields.at("rope_scaling");
  rope["rope_theta"] = fields.at("rope_theta");
  fields.erase("rope_scaling");
  fields.erase("rope_theta");
  return Merged(
      fields,
      {{"intermediate_size", 96},
       {"swiglu_limit", 7.0},
       {"rope_parameters", rope},
       {"quantization_config",
        {{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"model.layers.*.self_attn"}}}}});
}

}  // namespace

std::vector<FamilyCheckpoint> GptOssCheckpoints() {
  return {{"GptOss", GptOss().dump(), ""},
          {"GptOssOther", GptOssOther().dump(), ""},
          {"GptOssMxfp4", GptOssMxfp4().dump(), "gpt-oss"}};
}

}  // namespace cria::support
