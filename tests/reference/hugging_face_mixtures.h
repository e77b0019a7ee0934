#pragma once

#include <nlohmann/json.hpp>

#include "reference/reference_model.h"

// The mixtures of experts, for hugging_face_directory.cc.
namespace cria::reference {

// As ReadFamily.
bool ReadMixture(const nlohmann::json& fields, ReferenceConfig& config);

}  // namespace cria::reference
