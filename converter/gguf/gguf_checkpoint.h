#pragma once

#include <filesystem>

#include "converter/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Reads a GGUF file, or all files of one that was split, of which any is given.
Result<Checkpoint> OpenGgufCheckpoint(const std::filesystem::path& path);

// Its tokenizer alone, whatever its architecture and whether it has weights or not.
Result<CheckpointVocabulary> OpenGgufVocabulary(const std::filesystem::path& path);

}  // namespace cria
