#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

inline constexpr std::string_view kConvLayer = "conv";

// Reads the fields of families with short convolutions, and those that only these families have;
// does nothing for others. `config` must have its sizes already, as their fields say.
Status ReadHfShortConv(const JsonFields& fields, const Family& family, ModelConfig& config);

// The types of a family's layers with short convolutions: those of layer_types.
Result<std::vector<std::string_view>> ReadHfShortConvLayers(const JsonFields& fields,
                                                            const Family& family,
                                                            uint32_t num_hidden_layers);

}  // namespace cria
