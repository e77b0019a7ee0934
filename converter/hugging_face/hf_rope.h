#pragma once

#include <string_view>

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// The names of layers' types in config.json.
inline constexpr std::string_view kFullAttention = "full_attention";
inline constexpr std::string_view kSlidingAttention = "sliding_attention";

// Reads the rotary embeddings' parameters for layers of one type from a config.json: rope_theta and
// rope_scaling, or rope_parameters, which contains both in transformers 5. There, each type of
// layers may have an object of its own. Sets rotary_dim of `config`, which must have head_dim and
// max_position_embeddings already.
Status ReadHfRope(const JsonFields& fields, const Family& family, std::string_view layer_type,
                  ModelConfig& config, LayerKind& kind);

}  // namespace cria
