#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"
#include "model/checksum.h"
#include "model/model_file.h"

namespace cria {

// The model and the processor of packed weights.
struct PackedIdentity {
  std::string model_name;
  std::string processor;  // The processor that packed them, for messages; the fingerprint decides.
  Digest model_digest = {};
  uint64_t layout_fingerprint = 0;
  // For messages: bit s is set if a matrix of the layers, routers aside, has XNNPACK's Scheme s;
  // bit 3 for any format of GGML, bit 4 for w4g64, bit 5 for the others. 0: unknown, as in files of
  // older versions. Other bits may be those of schemes that are not known here.
  uint8_t layer_schemes = 0;
};

struct PackedMatrix {
  FileRange range;  // From the start of the file that holds them.
  uint64_t checksum = 0;
};

// An open, checked file of packed weights: they are inside the file, in order, and each matrix
// begins at the next multiple of 64 bytes or of kSectionAlignment. The weights themselves are not
// read.
class PackedFile {
 public:
  // `offset` is the beginning of the packed weights: 0, or a model file's packed_offset.
  static Result<PackedFile> Open(const std::string& path, uint64_t offset = 0);
  static Result<PackedFile> Open(platform::File file, uint64_t offset);

  const std::string& path() const { return file_.path(); }
  uint64_t size_bytes() const { return file_.size_bytes(); }
  const PackedIdentity& identity() const { return identity_; }
  std::span<const PackedMatrix> matrices() const { return matrices_; }

  // From the first matrix to the last, including the zeros after it.
  FileRange weights() const;
  Result<platform::FileMapping> Map(FileRange range) const {
    return file_.Map(range.offset, range.bytes);
  }

  // Reads every matrix and compares its checksum.
  Status VerifyPayload() const;

 private:
  explicit PackedFile(platform::File file) : file_(std::move(file)) {}
  Status ReadMetadata(std::span<const std::byte> metadata, uint64_t offset, uint64_t end);

  platform::File file_;
  PackedIdentity identity_;
  std::vector<PackedMatrix> matrices_;
};

// The layout of packed weights, which is known before they are packed.
class PackedFilePlan {
 public:
  // For matrices of these sizes, packed weights that begin at `offset` of a file. Matrix i begins
  // at a multiple of kSectionAlignment if begins_section[i]; the first one always does.
  PackedFilePlan(PackedIdentity identity, std::span<const uint64_t> matrix_bytes, uint64_t offset,
                 const std::vector<bool>& begins_section = {});

  std::span<PackedMatrix> matrices() { return matrices_; }
  // Size of the whole file; packed weights are its last part.
  uint64_t file_bytes() const { return file_bytes_; }

  // The preamble and the metadata, which are written at the plan's offset, with the matrices'
  // checksums so far.
  std::vector<std::byte> Head() const;

 private:
  std::vector<std::byte> Metadata() const;

  PackedIdentity identity_;
  uint64_t offset_;
  std::vector<PackedMatrix> matrices_;
  uint64_t file_bytes_ = 0;
};

}  // namespace cria
