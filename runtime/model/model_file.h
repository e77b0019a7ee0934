#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"
#include "model/checksum.h"
#include "model/config.h"
#include "model/file_range.h"
#include "model/pooling.h"
#include "model/reranking.h"
#include "model/tensor_table.h"
#include "model/vocabulary.h"

namespace cria {

class ModelFile;

// Where the numbers of a tensor are of which a ModelFile has only some rows and columns, because
// other ranks have the others (ranks).
class TensorPart {
 public:
  virtual ~TensorPart() = default;
  // Reads `rows` rows from row `first` on, in the layout of the part.
  virtual Status Read(const ModelFile& model, size_t first, size_t rows, std::span<std::byte> data,
                      std::span<std::byte> scales) const = 0;
};

// A tensor as it is stored in the file.
struct StoredTensor {
  TensorSpec spec;
  TensorLayout layout;
  // The first of the matrix's rows that are in this tensor. A matrix that is joined by rows may be
  // stored in pieces, one tensor behind another, whose block formats or factors differ: `spec` and
  // `layout` are then those of the piece.
  size_t first_row = 0;
  FileRange data;
  FileRange scales;  // Empty for kF32.
  uint64_t checksum = 0;
  // If it is not null, the rows are read by it; `data` and `scales` tell only how many bytes they
  // have, and there is no checksum.
  const TensorPart* part = nullptr;
};

// An open, checked model file: its metadata agrees with the file's size and with its own
// configuration, so that what these functions return needs no further check. Weights are not read
// until they are asked for.
class ModelFile {
 public:
  static Result<ModelFile> Open(const std::string& path);
  static Result<ModelFile> Open(platform::File file);
  // Opens also a file that has only a tokenizer and a chat template, which Open refuses: it has no
  // tensors, and its configuration has only vocab_size.
  static Result<ModelFile> OpenVocabulary(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint64_t size_bytes() const { return file_.size_bytes(); }
  // Where packed weights replace the portable ones, for Read and Map; 0: there are none.
  uint64_t packed_offset() const { return packed_offset_; }
  uint64_t metadata_bytes() const { return metadata_.bytes().size(); }
  // If not, mappings are private memory; see platform::File.
  bool is_mappable() const { return file_.is_mappable(); }
  // Identifies the model: the hash of all metadata, including the tensors' checksums.
  const Digest& digest() const { return digest_; }
  // Identifies what is packed: for each part of a model (ranks), something else.
  const Digest& packing_digest() const { return packing_digest_; }
  bool is_vocabulary_only() const { return is_vocabulary_only_; }

  std::string_view producer() const { return producer_; }
  std::string_view name() const { return name_; }
  const ModelConfig& config() const { return config_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Jinja; empty: there is none.
  std::string_view chat_template_source() const { return chat_template_source_; }
  std::span<const int32_t> stop_token_ids() const { return stop_token_ids_; }
  // Whether the KV cache should be in f16 rather than in int8, unless the user says otherwise.
  bool prefers_f16_cache() const { return prefers_f16_cache_; }
  // How embeddings are pooled, if the model was made for them.
  std::optional<Pooling> pooling() const { return pooling_; }
  // How documents are ranked, if the model was made for that; valid.
  const std::optional<Reranking>& reranking() const { return reranking_; }

  std::span<const StoredTensor> tensors() const { return tensors_; }
  // A tensor of the configuration, or its first piece. For a tied output head that is not stored
  // separately, it is the embedding table.
  const StoredTensor& tensor(TensorRole role, int layer = kNoLayer) const {
    return pieces(role, layer).front();
  }
  // All pieces of a tensor.
  std::span<const StoredTensor> pieces(TensorRole role, int layer = kNoLayer) const;
  // Whether the file has the tensor in its portable form. A file with packed weights has only
  // vectors and the embedding table in that form.
  bool is_stored(const StoredTensor& tensor) const {
    return packed_offset_ == 0 || tensor.data.offset < packed_offset_;
  }

  Status Read(FileRange range, std::span<std::byte> destination) const {
    return file_.ReadAt(range.offset, destination);
  }
  Result<platform::FileMapping> Map(FileRange range) const {
    return file_.Map(range.offset, range.bytes);
  }
  // Another handle of the file, for reading what is at and after packed_offset.
  Result<platform::File> DuplicateFile() const { return file_.Duplicate(); }

  // Reads every stored tensor and compares its checksum.
  Status VerifyPayload() const;

 private:
  explicit ModelFile(platform::File file) : file_(std::move(file)) {}
  static Result<ModelFile> OpenEither(platform::File file);
  friend class ModelFileReader;
  friend class ModelPart;

  platform::File file_;
  platform::FileMapping metadata_;
  Digest digest_ = {};
  Digest packing_digest_ = {};
  bool is_vocabulary_only_ = false;
  uint64_t packed_offset_ = 0;
  uint64_t portable_bytes_ = 0;  // Size of the file with all tensors in portable form.
  std::string_view producer_;
  std::string_view name_;
  ModelConfig config_;
  Vocabulary vocabulary_;
  std::string_view chat_template_source_;
  std::span<const int32_t> stop_token_ids_;
  bool prefers_f16_cache_ = false;
  std::optional<Pooling> pooling_;
  std::optional<Reranking> reranking_;
  std::vector<StoredTensor> tensors_;
  std::shared_ptr<const void> parts_;  // What the tensors' parts point to.
  // Index of the first piece in tensors_ by layer (0 for kNoLayer) and role.
  std::vector<uint32_t> tensor_index_;
};

// The matrices of a model that products use, in the order in which a forward pass uses them, or
// their pieces: these are packed. A tied output head is among them.
std::vector<const StoredTensor*> MultipliedMatrices(const ModelFile& model);

}  // namespace cria
