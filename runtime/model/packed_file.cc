#include "model/packed_file.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>

#include "core/format.h"
#include "model/file_head.h"
#include "packed_generated.h"

namespace cria {
namespace {

constexpr FileKind kPackedWeights = {.magic = kPackedMagic,
                                     .format_version = kPackedFormatVersion,
                                     .name = "a file of packed weights",
                                     .how_made = RemedyKind::kPack,
                                     .if_damaged = RemedyKind::kPack};

}  // namespace

Result<PackedFile> PackedFile::Open(const std::string& path, uint64_t offset) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, platform::File::Open(path));
  return Open(std::move(file), offset);
}

Result<PackedFile> PackedFile::Open(platform::File file, uint64_t offset) {
  PackedFile packed(std::move(file));
  CRIA_ASSIGN_OR_RETURN(const FileHead head, ReadFileHead(packed.file_, offset, kPackedWeights));
  // Otherwise file_bytes would not be the size of the packed weights.
  if (head.preamble.packed_offset != 0) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: packed_offset is {}, which only a model file has", packed.path(),
                       head.preamble.packed_offset),
                kPackedWeights.if_damaged);
  }
  if (Status read =
          packed.ReadMetadata(head.metadata.bytes(), offset, offset + head.preamble.file_bytes);
      !read) {
    return Fail(read.error().code(), Format("{}: {}", packed.path(), read.error().message()),
                kPackedWeights.if_damaged);
  }
  return packed;
}

Status PackedFile::ReadMetadata(std::span<const std::byte> metadata, uint64_t offset,
                                uint64_t end) {
  const auto* data = reinterpret_cast<const uint8_t*>(metadata.data());
  flatbuffers::Verifier verifier(data, metadata.size());
  if (!schema::VerifyPackedWeightsBuffer(verifier)) {
    return Fail(ErrorCode::kInvalidFile,
                "the metadata is not a valid FlatBuffer of the schema of packed weights");
  }
  const schema::PackedWeights& stored = *schema::GetPackedWeights(data);
  if (stored.model_digest()->size() != identity_.model_digest.size()) {
    return Fail(ErrorCode::kInvalidFile, "model_digest has a wrong length");
  }
  identity_.model_name = stored.model_name()->str();
  identity_.processor = stored.processor()->str();
  std::ranges::copy(*stored.model_digest(), identity_.model_digest.begin());
  identity_.layout_fingerprint = stored.layout_fingerprint();
  identity_.layer_schemes = stored.layer_schemes();

  uint64_t expected = offset + sizeof(FilePreamble) + metadata.size();
  for (const schema::PackedMatrix* matrix : *stored.matrices()) {
    // The first matrix begins a section; the others follow at the next aligned offset, or begin
    // one.
    const FileRange range = {offset + matrix->offset(), matrix->bytes()};
    const uint64_t section = AlignUp(expected, kSectionAlignment);
    expected = AlignUp(expected, kTensorAlignment);
    if (range.offset == section || matrices_.empty()) expected = section;
    if (range.offset != expected || range.offset > end || range.bytes > end - range.offset ||
        end - range.offset - range.bytes < kTrailingSlackBytes) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("matrices: number {} lies at bytes {} + {}, not from byte {} on or not "
                         "inside the packed weights",
                         matrices_.size(), range.offset, range.bytes, expected));
    }
    matrices_.push_back({.range = range, .checksum = matrix->checksum()});
    expected = range.offset + range.bytes;
  }
  if (matrices_.empty()) return Fail(ErrorCode::kInvalidFile, "there are no matrices");
  return {};
}

FileRange PackedFile::weights() const {
  const uint64_t begin = matrices_.front().range.offset;
  const FileRange& last = matrices_.back().range;
  return {begin, last.offset + last.bytes + kTrailingSlackBytes - begin};
}

Status PackedFile::VerifyPayload() const {
  for (size_t i = 0; i < matrices_.size(); ++i) {
    Checksum64 checksum;
    CRIA_RETURN_IF_ERROR(AddToChecksum(file_, matrices_[i].range, checksum));
    if (checksum.Finish() != matrices_[i].checksum) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: packed matrix {} is damaged (checksum does not match)", path(), i),
                  kPackedWeights.if_damaged);
    }
  }
  return {};
}

PackedFilePlan::PackedFilePlan(PackedIdentity identity, std::span<const uint64_t> matrix_bytes,
                               uint64_t offset, const std::vector<bool>& begins_section)
    : identity_(std::move(identity)), offset_(offset), matrices_(matrix_bytes.size()) {
  // All fields have a fixed size and are always stored, so the size does not depend on the values.
  uint64_t end = AlignUp(offset + Head().size(), kSectionAlignment);
  for (size_t i = 0; i < matrices_.size(); ++i) {
    const bool is_aligned = i < begins_section.size() && begins_section[i];
    matrices_[i].range = {AlignUp(end, is_aligned ? kSectionAlignment : kTensorAlignment),
                          matrix_bytes[i]};
    end = matrices_[i].range.offset + matrix_bytes[i];
  }
  file_bytes_ = AlignUp(end + kTrailingSlackBytes, kTensorAlignment);
}

std::vector<std::byte> PackedFilePlan::Head() const {
  const std::vector<std::byte> metadata = Metadata();
  FilePreamble preamble = {.magic = kPackedMagic,
                           .format_version = kPackedFormatVersion,
                           .metadata_bytes = metadata.size(),
                           .file_bytes = file_bytes_ - offset_,
                           .metadata_digest = Digest128(metadata)};
  preamble.preamble_checksum = PreambleChecksum(preamble);
  std::vector<std::byte> head(sizeof preamble + metadata.size());
  std::memcpy(head.data(), &preamble, sizeof preamble);
  std::ranges::copy(metadata, head.begin() + sizeof preamble);
  return head;
}

std::vector<std::byte> PackedFilePlan::Metadata() const {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  std::vector<schema::PackedMatrix> matrices;
  matrices.reserve(matrices_.size());
  for (const PackedMatrix& matrix : matrices_) {
    matrices.emplace_back(matrix.range.offset - offset_, matrix.range.bytes, matrix.checksum);
  }
  const Digest& digest = identity_.model_digest;
  builder.Finish(
      schema::CreatePackedWeights(builder, builder.CreateString(identity_.model_name),
                                  builder.CreateString(identity_.processor),
                                  builder.CreateVector(digest.data(), digest.size()),
                                  identity_.layout_fingerprint,
                                  builder.CreateVectorOfStructs(matrices), identity_.layer_schemes),
      schema::PackedWeightsIdentifier());
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {begin, begin + builder.GetSize()};
}

}  // namespace cria
