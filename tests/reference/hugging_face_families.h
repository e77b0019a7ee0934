#pragma once

#include <nlohmann/json.hpp>

#include "reference/reference_model.h"

// The families that compute more than Llama does, for hugging_face_directory.cc.
namespace cria::reference {

// Reads fields of config.json that only some classes have, with their defaults in transformers,
// into `config`, which has the fields of LlamaConfig already. Returns false for the other classes.
// Fills in config.layers.
bool ReadFamily(const nlohmann::json& fields, ReferenceConfig& config);

}  // namespace cria::reference
