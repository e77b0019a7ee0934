#pragma once

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads in which layers there are windows and rope, and sets the layers' kinds.
// num_hidden_layers, head_dim and max_position_embeddings of `config` must be set already.
Status ReadHfLayers(const JsonFields& fields, const Family& family, ModelConfig& config);

}  // namespace cria
