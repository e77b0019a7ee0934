#pragma once

#include <filesystem>

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Reads a folder in Hugging Face's layout: config.json and either model.safetensors or several
// shards with model.safetensors.index.json; if there is neither, pytorch_model.bin or its shards.
Result<Checkpoint> OpenHfCheckpoint(const std::filesystem::path& folder);

// Whether the path is a folder with config.json and without weights.
Result<bool> IsHfConfigWithoutWeights(const std::filesystem::path& folder);

// Reads only the tokenizer; the folder needs neither weights nor a config.json.
Result<CheckpointVocabulary> OpenHfVocabulary(const std::filesystem::path& folder);

}  // namespace cria
