#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// Bytes of an entry, as they lie in the archive's file.
struct ZipEntry {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
using ZipDirectory = std::map<std::string, ZipEntry, std::less<>>;

// Reads the directory of a zip archive (APPNOTE.TXT 4.3), zip64 too, all of whose entries are
// stored as they are, so that they can be read in place: that is why no library is used, none of
// which tells where an entry lies. A compressed or encrypted entry is an error that names it, and
// so are entries that overlap. At most 65,536 entries.
Result<ZipDirectory> ReadZipDirectory(const platform::File& file);

}  // namespace cria
