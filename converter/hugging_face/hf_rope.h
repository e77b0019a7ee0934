#pragma once

#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads the rotary embeddings' parameters from a config.json: rope_theta and rope_scaling, or
// rope_parameters, which contains both in transformers 5. max_position_embeddings and head_dim of
// `config` must be set already.
Status ReadHfRope(const JsonFields& fields, ModelConfig& config);

}  // namespace cria
