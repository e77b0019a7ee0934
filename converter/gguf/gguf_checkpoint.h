#pragma once

#include <filesystem>

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Reads a GGUF file, or all files of a split one if `path` is one of them.
Result<Checkpoint> OpenGgufCheckpoint(const std::filesystem::path& path);

// Reads only the tokenizer, for any architecture, with or without weights.
Result<CheckpointVocabulary> OpenGgufVocabulary(const std::filesystem::path& path);

}  // namespace cria
