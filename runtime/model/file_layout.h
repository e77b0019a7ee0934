#pragma once

// The byte layout of a model file, which schema/README.md describes in prose. The writer and the
// reader have only this in common.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "model/checksum.h"

namespace cria {

static_assert(std::endian::native == std::endian::little,
              "model files are little endian and are used in place");

inline constexpr std::array<char, 8> kModelMagic = {'C', 'R', 'I', 'A', 'M', 'O', 'D', 'L'};
inline constexpr uint32_t kModelFormatVersion = 2;
inline constexpr std::array<char, 8> kPackedMagic = {'C', 'R', 'I', 'A', 'P', 'A', 'C', 'K'};
inline constexpr uint32_t kPackedFormatVersion = 1;

// Limits the metadata before memory is allocated or a FlatBuffer is verified. 128,000 pieces with
// their merges need about 8 MB.
inline constexpr uint64_t kMaxMetadataBytes = uint64_t{256} << 20;

// Lets each section be mapped on its own, also with pages of 16 KiB.
inline constexpr uint64_t kSectionAlignment = uint64_t{16} << 10;
// For every tensor's data and for its scales.
inline constexpr uint64_t kTensorAlignment = 64;
// Zeros after the last tensor, because kernels may read past its end.
inline constexpr uint64_t kTrailingSlackBytes = 128;

// The beginning of a model file and of packed weights; the metadata follows directly.
struct FilePreamble {
  std::array<char, 8> magic = kModelMagic;
  uint32_t format_version = kModelFormatVersion;
  uint32_t reserved = 0;
  // In a model file: the offset of packed weights, which replace the section of portable ones; 0 if
  // there are none.
  uint64_t packed_offset = 0;
  uint64_t metadata_bytes = 0;
  uint64_t file_bytes = 0;         // For a model file: its size with portable weights.
  Digest metadata_digest = {};     // Digest of the metadata bytes; it is the model's digest.
  uint64_t preamble_checksum = 0;  // XXH3-64 of the bytes before this field.
};
static_assert(sizeof(FilePreamble) == 64 && std::is_trivially_copyable_v<FilePreamble>);
static_assert(offsetof(FilePreamble, preamble_checksum) == 56);

inline uint64_t PreambleChecksum(const FilePreamble& preamble) {
  return ChecksumOf(
      std::as_bytes(std::span(&preamble, 1)).first(offsetof(FilePreamble, preamble_checksum)));
}

// `alignment` must be a power of two, and the result must not overflow.
constexpr uint64_t AlignUp(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

}  // namespace cria
