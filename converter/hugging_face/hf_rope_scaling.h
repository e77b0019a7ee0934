#pragma once

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads how rotary frequencies are stretched from `rope`, an object of a config.json. `fields` has
// the fields that may be outside it: the whole file, or `rope` again if types of layers have
// objects of their own. max_position_embeddings, head_dim and rotary_dim of `config` and
// global_head_dim of `kind` must be set already.
Result<RopeScaling> ReadHfRopeScaling(const JsonFields& fields, const JsonFields& rope,
                                      const Family& family, const ModelConfig& config,
                                      const LayerKind& kind);

}  // namespace cria
