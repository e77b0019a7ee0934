#pragma once

// Where the bytes of a model file lie; schema/README.md tells the same in prose. The writer and the
// reader share this and nothing else.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "model/checksum.h"

namespace cria {

static_assert(std::endian::native == std::endian::little,
              "model files are little endian and are used as they lie");

inline constexpr std::array<char, 8> kModelMagic = {'C', 'R', 'I', 'A', 'M', 'O', 'D', 'L'};
inline constexpr uint32_t kModelFormatVersion = 2;
inline constexpr std::array<char, 8> kPackedMagic = {'C', 'R', 'I', 'A', 'P', 'A', 'C', 'K'};
inline constexpr uint32_t kPackedFormatVersion = 1;

// Bounds the metadata before memory is taken or a FlatBuffer is verified; 128,000 pieces with their
// merges need about 8 MB.
inline constexpr uint64_t kMaxMetadataBytes = uint64_t{256} << 20;

// A section can be mapped by itself, also where pages are 16 KiB.
inline constexpr uint64_t kSectionAlignment = uint64_t{16} << 10;
// Of every tensor's data and of its scales.
inline constexpr uint64_t kTensorAlignment = 64;
// Zeros after the last tensor, so that a kernel may read beyond the end of one.
inline constexpr uint64_t kTrailingSlackBytes = 128;

// What a model file and packed weights begin with; the metadata follows at once.
struct FilePreamble {
  std::array<char, 8> magic = kModelMagic;
  uint32_t format_version = kModelFormatVersion;
  uint32_t reserved = 0;
  // Of a model file: where packed weights begin, in place of the section with the portable ones; 0
  // where there are none.
  uint64_t packed_offset = 0;
  uint64_t metadata_bytes = 0;
  uint64_t file_bytes = 0;         // A model file's with its portable weights.
  Digest metadata_digest = {};     // Of the metadata bytes: a model's digest.
  uint64_t preamble_checksum = 0;  // XXH3-64 of the bytes before this field.
};
static_assert(sizeof(FilePreamble) == 64 && std::is_trivially_copyable_v<FilePreamble>);
static_assert(offsetof(FilePreamble, preamble_checksum) == 56);

inline uint64_t PreambleChecksum(const FilePreamble& preamble) {
  return ChecksumOf(
      std::as_bytes(std::span(&preamble, 1)).first(offsetof(FilePreamble, preamble_checksum)));
}

// `alignment` is a power of two; `offset` must be at least that far from the end of its type.
constexpr uint64_t AlignUp(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

}  // namespace cria
