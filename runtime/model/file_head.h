#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/platform.h"
#include "cria/error.h"
#include "model/file_layout.h"

namespace cria {

// The required values of a head, and the words and remedies of errors about it.
struct FileKind {
  std::array<char, 8> magic;
  uint32_t format_version;
  std::string_view name;  // "a Cria model file"
  RemedyKind how_made;
  RemedyKind if_damaged;
};

// A preamble and the metadata after it.
struct FileHead {
  FilePreamble preamble;
  platform::FileMapping metadata;
};

// Reads the head at `offset` and checks magic, checksum, version, sizes, and the digest of the
// metadata. Errors name the file.
Result<FileHead> ReadFileHead(const platform::File& file, uint64_t offset, const FileKind& kind);

}  // namespace cria
