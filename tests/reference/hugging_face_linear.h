#pragma once

#include <nlohmann/json.hpp>

#include "reference/reference_model.h"

namespace cria::reference {

// Reads the fields of the families with linear attention: Qwen3.5, its mixture, and Qwen3-Next.
// Returns false for others.
bool ReadLinearFamily(const nlohmann::json& fields, ReferenceConfig& config);

}  // namespace cria::reference
