#include "model/model_file.h"

#include <algorithm>
#include <format>
#include <vector>

#include "model/file_layout.h"
#include "model/model_file_reader.h"

namespace cria {
namespace {

size_t TensorSlot(TensorRole role, int layer) {
  return static_cast<size_t>(std::max(layer, 0)) * kNumTensorRoles + static_cast<size_t>(role);
}

Result<FilePreamble> ReadPreamble(const platform::File& file) {
  FilePreamble preamble;
  if (file.size_bytes() < sizeof preamble) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: is {} bytes long, too short for a model file; convert it again",
                            file.path(), file.size_bytes()));
  }
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(&preamble, 1))));
  if (preamble.magic != kFileMagic) {
    return Fail(
        ErrorCode::kInvalidFile,
        std::format("{}: is not a Cria model file; make one with cria-convert", file.path()));
  }
  if (preamble.preamble_checksum != PreambleChecksum(preamble)) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: the preamble is damaged (preamble_checksum does not match); copy "
                            "or convert the file again",
                            file.path()));
  }
  if (preamble.format_version != kFileFormatVersion) {
    return Fail(ErrorCode::kUnsupported,
                std::format("{}: format_version is {}, but this program reads {}; convert the "
                            "checkpoint with a matching cria-convert",
                            file.path(), preamble.format_version, kFileFormatVersion));
  }
  if (preamble.file_bytes != file.size_bytes()) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: is {} bytes long, but file_bytes says {}; it was cut short or "
                            "appended to, copy or convert it again",
                            file.path(), file.size_bytes(), preamble.file_bytes));
  }
  if (preamble.metadata_offset != sizeof preamble || preamble.metadata_bytes > kMaxMetadataBytes ||
      preamble.metadata_bytes > file.size_bytes() - sizeof preamble) {
    return Fail(
        ErrorCode::kInvalidFile,
        std::format("{}: metadata_bytes is {}, which the file cannot hold; convert it again",
                    file.path(), preamble.metadata_bytes));
  }
  return preamble;
}

}  // namespace

Result<ModelFile> ModelFile::Open(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, platform::File::Open(path));
  ModelFile model(std::move(file));
  CRIA_ASSIGN_OR_RETURN(const FilePreamble preamble, ReadPreamble(model.file_));
  CRIA_ASSIGN_OR_RETURN(model.metadata_,
                        model.file_.Map(preamble.metadata_offset, preamble.metadata_bytes));
  if (Digest128(model.metadata_.bytes()) != preamble.metadata_digest) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: the metadata is damaged (metadata_digest does not match); copy or "
                            "convert the file again",
                            path));
  }
  model.digest_ = preamble.metadata_digest;
  if (Status read = ModelFileReader(model).Read(); !read) {
    return Fail(read.error().code(), std::format("{}: {}", path, read.error().message()));
  }

  model.tensor_index_.assign(size_t{model.config_.num_hidden_layers} * kNumTensorRoles, 0);
  for (uint32_t i = 0; i < model.tensors_.size(); ++i) {
    const TensorSpec& spec = model.tensors_[i].spec;
    model.tensor_index_[TensorSlot(spec.role, spec.layer)] = i;
  }
  return model;
}

const StoredTensor& ModelFile::tensor(TensorRole role, int layer) const {
  const StoredTensor& found = tensors_[tensor_index_[TensorSlot(role, layer)]];
  // Slot 0 of the index is the embedding, and an absent (tied) head was left pointing there.
  return found;
}

Status ModelFile::VerifyPayload() const {
  constexpr size_t kSliceBytes = size_t{1} << 20;
  std::vector<std::byte> slice(kSliceBytes);
  for (const StoredTensor& tensor : tensors_) {
    Checksum64 checksum;
    for (const FileRange range : {tensor.data, tensor.scales}) {
      for (uint64_t done = 0; done < range.bytes; done += kSliceBytes) {
        const size_t count = std::min<uint64_t>(kSliceBytes, range.bytes - done);
        const std::span<std::byte> part = std::span(slice).first(count);
        CRIA_RETURN_IF_ERROR(file_.ReadAt(range.offset + done, part));
        checksum.Update(part);
      }
    }
    if (checksum.Finish() != tensor.checksum) {
      return Fail(
          ErrorCode::kInvalidFile,
          std::format("{}: the weights of {} are damaged (checksum does not match); copy or "
                      "convert the file again",
                      path(), tensor.spec.Name()));
    }
  }
  return {};
}

}  // namespace cria
