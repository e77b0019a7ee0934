#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// The place of an entry's bytes in the archive.
struct ZipEntry {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
using ZipDirectory = std::map<std::string, ZipEntry, std::less<>>;

// Reads the directory of a zip archive (APPNOTE.TXT 4.3), including zip64. All entries must be
// stored uncompressed, so that they can be read in place. (No library is used because none returns
// where an entry is stored.) A compressed or encrypted entry is an error that names it, and so are
// overlapping entries. There may be at most 65,536 entries.
Result<ZipDirectory> ReadZipDirectory(const platform::File& file);

}  // namespace cria
