#pragma once

#include <filesystem>

#include "converter/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Reads the description of a checkpoint; weights are left where they are. Its format is told from
// what a file begins with, or from which files a folder has.
Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path);

// Reads its tokenizer alone.
Result<CheckpointVocabulary> OpenVocabulary(const std::filesystem::path& path);

}  // namespace cria
