#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reference/reference_model.h"

// The families of 2025 and 2026 that differ from others by a few rules, for
// hugging_face_directory.cc.
namespace cria::reference {

// As ReadFamily.
bool ReadRecentFamily(const nlohmann::json& fields, ReferenceConfig& config);

// The architecture of a text model within one that sees pictures, by its model_type.
std::string ArchitectureWithin(const nlohmann::json& text);

}  // namespace cria::reference
