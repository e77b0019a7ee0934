#pragma once

#include <nlohmann/json.hpp>

#include "reference/reference_model.h"

// The families with short convolutions, for hugging_face_directory.cc.
namespace cria::reference {

// As ReadFamily: LFM2, its mixture, and LFM3.
bool ReadShortConvFamily(const nlohmann::json& fields, ReferenceConfig& config);

}  // namespace cria::reference
