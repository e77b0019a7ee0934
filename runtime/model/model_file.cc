#include "model/model_file.h"

#include <algorithm>
#include <vector>

#include "core/format.h"
#include "model/file_head.h"
#include "model/model_file_reader.h"
#include "model/path_contents.h"

namespace cria {
namespace {

size_t TensorSlot(TensorRole role, int layer) {
  return static_cast<size_t>(std::max(layer, 0)) * kNumTensorRoles + static_cast<size_t>(role);
}

constexpr FileKind kModelFile = {.magic = kModelMagic,
                                 .format_version = kModelFormatVersion,
                                 .name = "a Cria model file",
                                 .how_made = RemedyKind::kConvert,
                                 .if_damaged = RemedyKind::kCopyOrConvert};

}  // namespace

Result<ModelFile> ModelFile::Open(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, OpenModelPath(path));
  return Open(std::move(file));
}

Result<ModelFile> ModelFile::Open(platform::File file) {
  CRIA_ASSIGN_OR_RETURN(ModelFile model, OpenEither(std::move(file)));
  if (!model.is_vocabulary_only()) return model;
  return Fail(ErrorCode::kUnsupported,
              Format("{}: has only a tokenizer, which can only turn text into tokens; convert "
                     "the checkpoint with its weights",
                     model.path()));
}

Result<ModelFile> ModelFile::OpenVocabulary(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, OpenModelPath(path));
  return OpenEither(std::move(file));
}

Result<ModelFile> ModelFile::OpenEither(platform::File file) {
  ModelFile model(std::move(file));
  CRIA_ASSIGN_OR_RETURN(FileHead head, ReadFileHead(model.file_, 0, kModelFile));
  model.metadata_ = std::move(head.metadata);
  model.packed_offset_ = head.preamble.packed_offset;
  model.portable_bytes_ = head.preamble.file_bytes;
  model.digest_ = model.packing_digest_ = head.preamble.metadata_digest;
  if (Status read = ModelFileReader(model).Read(); !read) {
    return Fail(read.error().code(), Format("{}: {}", model.path(), read.error().message()));
  }
  if (model.packed_offset_ != 0 && !model.file_.is_mappable()) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: contains packed weights, which are mapped, but its offset in the "
                       "file around it is not a multiple of 64; align it, or use the model "
                       "file that it was made from",
                       model.path()));
  }

  model.tensor_index_.assign(model.config_.num_stored_layers() * kNumTensorRoles, 0);
  for (uint32_t i = static_cast<uint32_t>(model.tensors_.size()); i-- > 0;) {
    const TensorSpec& spec = model.tensors_[i].spec;
    model.tensor_index_[TensorSlot(spec.role, spec.layer)] = i;
  }
  return model;
}

std::span<const StoredTensor> ModelFile::pieces(TensorRole role, int layer) const {
  // The index of a tied head that is not stored is 0, which is the embedding table.
  const std::span from = std::span(tensors_).subspan(tensor_index_[TensorSlot(role, layer)]);
  const auto is_other = [&](const StoredTensor& tensor) {
    return tensor.first_row == 0 && &tensor != &from.front();
  };
  return from.first(static_cast<size_t>(std::ranges::find_if(from, is_other) - from.begin()));
}

Status ModelFile::VerifyPayload() const {
  for (const StoredTensor& tensor : tensors_) {
    if (!is_stored(tensor)) continue;
    Checksum64 checksum;
    CRIA_RETURN_IF_ERROR(AddToChecksum(file_, tensor.data, checksum));
    CRIA_RETURN_IF_ERROR(AddToChecksum(file_, tensor.scales, checksum));
    if (checksum.Finish() != tensor.checksum) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: the weights of {} are damaged (checksum does not match); copy or "
                         "convert the file again",
                         path(), tensor.spec.Name()));
    }
  }
  return {};
}

std::vector<const StoredTensor*> MultipliedMatrices(const ModelFile& model) {
  std::vector<const StoredTensor*> matrices;
  for (const TensorSpec& spec : ExpectedTensors(model.config())) {
    if (!spec.is_multiplied()) continue;
    for (const StoredTensor& piece : model.pieces(spec.role, spec.layer)) {
      matrices.push_back(&piece);
    }
  }
  return matrices;
}

}  // namespace cria
