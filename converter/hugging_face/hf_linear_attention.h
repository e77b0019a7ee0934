#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

inline constexpr std::string_view kLinearAttentionLayer = "linear_attention";

// Reads the fields of families with linear attention, and those that only these families have; does
// nothing for others.
Status ReadHfLinearAttention(const JsonFields& fields, const Family& family, ModelConfig& config);

// The types of such a family's layers: those of layer_types, or all but every n-th are linear.
Result<std::vector<std::string_view>> ReadHfLinearAttentionLayers(const JsonFields& fields,
                                                                  uint32_t num_hidden_layers);

}  // namespace cria
