#include "model/file_head.h"

#include "core/format.h"

namespace cria {
namespace {

Result<FilePreamble> ReadPreamble(const platform::File& file, uint64_t offset,
                                  const FileKind& kind) {
  FilePreamble preamble;
  if (offset > file.size_bytes() || file.size_bytes() - offset < sizeof preamble) {
    return Fail(
        ErrorCode::kInvalidFile,
        Format("{}: is {} bytes long, too short for {}", file.path(), file.size_bytes(), kind.name),
        kind.if_damaged);
  }
  CRIA_RETURN_IF_ERROR(file.ReadAt(offset, std::as_writable_bytes(std::span(&preamble, 1))));
  if (preamble.magic != kind.magic) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: is not {}", file.path(), kind.name),
                kind.how_made);
  }
  if (preamble.preamble_checksum != PreambleChecksum(preamble)) {
    return Fail(
        ErrorCode::kInvalidFile,
        Format("{}: the preamble is damaged (preamble_checksum does not match)", file.path()),
        kind.if_damaged);
  }
  if (preamble.format_version != kind.format_version) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: format_version is {}, but this version reads {}", file.path(),
                       preamble.format_version, kind.format_version),
                kind.how_made);
  }
  if (preamble.reserved != 0) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: the preamble's reserved field is {} instead of 0, which this "
                       "program does not know; use a newer cria",
                       file.path(), preamble.reserved));
  }
  const uint64_t actual_bytes = file.size_bytes() - offset;
  if (preamble.packed_offset == 0 && preamble.file_bytes != actual_bytes) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: is {} bytes long, but file_bytes says {}: it was cut short or "
                       "appended to",
                       file.path(), actual_bytes, preamble.file_bytes),
                kind.if_damaged);
  }
  if (preamble.metadata_bytes > kMaxMetadataBytes ||
      preamble.metadata_bytes > actual_bytes - sizeof preamble) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: metadata_bytes is {}, which the file cannot hold", file.path(),
                       preamble.metadata_bytes),
                kind.if_damaged);
  }
  return preamble;
}

}  // namespace

Result<FileHead> ReadFileHead(const platform::File& file, uint64_t offset, const FileKind& kind) {
  FileHead head;
  CRIA_ASSIGN_OR_RETURN(head.preamble, ReadPreamble(file, offset, kind));
  CRIA_ASSIGN_OR_RETURN(head.metadata,
                        file.Map(offset + sizeof(FilePreamble), head.preamble.metadata_bytes));
  if (Digest128(head.metadata.bytes()) != head.preamble.metadata_digest) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: the metadata is damaged (metadata_digest does not match)", file.path()),
                kind.if_damaged);
  }
  return head;
}

}  // namespace cria
