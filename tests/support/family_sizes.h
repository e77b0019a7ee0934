#pragma once

// What the configurations of small checkpoints of all families have.

#include <nlohmann/json.hpp>

namespace cria::support {

inline nlohmann::json Merged(nlohmann::json fields, const nlohmann::json& more) {
  fields.update(more);
  return fields;
}

inline nlohmann::json Sizes(const char* architecture, const char* model_type, int layers) {
  return {{"architectures", {architecture}},
          {"model_type", model_type},
          {"hidden_size", 64},
          {"intermediate_size", 160},
          {"num_hidden_layers", layers},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", 300},
          {"max_position_embeddings", 128}};
}

}  // namespace cria::support
