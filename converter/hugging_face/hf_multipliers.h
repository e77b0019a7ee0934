#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"

namespace cria {

// Reads the numbers of a config.json that are folded into weights. The sizes of `config` must be
// set already.
Result<WeightFolding> ReadHfMultipliers(const JsonFields& fields, const Family& family,
                                        const ModelConfig& config);

// Reads the caps of scores and logits. Null switches off a family's default.
Status ReadHfSoftCaps(const JsonFields& fields, const Family& family, ModelConfig& config);

}  // namespace cria
