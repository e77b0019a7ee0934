#pragma once

#include <nlohmann/json.hpp>

#include "reference/reference_model.h"

namespace cria::reference {

// Reads the fields that Gemma 4's class has; returns false for another class.
bool ReadGemma4(const nlohmann::json& fields, ReferenceConfig& config);

}  // namespace cria::reference
