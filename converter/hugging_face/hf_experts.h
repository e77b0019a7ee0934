#pragma once

#include <cstddef>
#include <vector>

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads the fields of a mixture of experts, if the family has one, and fails for what a mixture
// computes in another way.
Status ReadHfExperts(const JsonFields& fields, const Family& family, ModelConfig& config);

// Which layers have no experts, although the model has.
Result<std::vector<bool>> ReadHfDenseLayers(const JsonFields& fields, const Family& family,
                                            size_t num_layers);

}  // namespace cria
