#pragma once

#include <filesystem>

#include "reference/reference_model.h"

namespace cria::reference {

// Reads config.json and the weights (model.safetensors, or the shards that
// model.safetensors.index.json lists; F32, BF16 or F16) of a Llama checkpoint. Whole tensors are
// held as floats, so it is for small models. It trusts the directory more than the converter may:
// throws std::runtime_error or nlohmann::json::exception where something is missing or does not
// fit.
ReferenceModel ReadHuggingFaceDirectory(const std::filesystem::path& directory);

}  // namespace cria::reference
