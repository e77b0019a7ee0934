#pragma once

#include <filesystem>

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Reads the description of a checkpoint, but not its weights. The format is recognized by the first
// bytes of a file, or by the files in a folder.
Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path);

// Reads only the tokenizer of a checkpoint.
Result<CheckpointVocabulary> OpenVocabulary(const std::filesystem::path& path);

}  // namespace cria
