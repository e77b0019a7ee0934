#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/hugging_face/hf_families.h"
#include "converter/input/json_fields.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

inline constexpr std::string_view kMambaLayer = "mamba";

// Reads the fields of families with layers of Mamba-2; does nothing for others. `config` must have
// its sizes already.
Status ReadHfMamba(const JsonFields& fields, const Family& family, ModelConfig& config);

// The types of such a family's layers: kMambaLayer or kFullAttention.
Result<std::vector<std::string_view>> ReadHfMambaLayers(const JsonFields& fields,
                                                        uint32_t num_hidden_layers);

}  // namespace cria
