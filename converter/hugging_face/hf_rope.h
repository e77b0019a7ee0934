#pragma once

#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads how rotary embeddings are made out of the fields of a config.json: rope_theta and
// rope_scaling, or rope_parameters, which holds both in transformers 5. max_position_embeddings of
// `config` must be there already, and head_dim.
Status ReadHfRope(const JsonFields& fields, ModelConfig& config);

}  // namespace cria
