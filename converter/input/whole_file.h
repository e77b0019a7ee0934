#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cria/error.h"

namespace cria {

// Whether a checkpoint has this file. Fails if something has this name that cannot be read, such as
// a link to a file that does not exist: a file that is lost must not be taken for one that the
// checkpoint never had.
Result<bool> FileExists(const std::filesystem::path& path);

// The contents of a file of at most `max_bytes`. An empty file, and one that is only a pointer of
// Git LFS, are errors.
Result<std::string> ReadWholeFile(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace cria
