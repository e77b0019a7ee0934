#pragma once

#include <cstdint>

#include "core/platform.h"
#include "cria/error.h"
#include "model/checksum.h"

namespace cria {

struct FileRange {
  uint64_t offset = 0;  // From the start of the file.
  uint64_t bytes = 0;
};

// Reads the range and adds it to `checksum`.
Status AddToChecksum(const platform::File& file, FileRange range, Checksum64& checksum);

}  // namespace cria
