#include "xnn/packed_weights.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "model/file_layout.h"
#include "model/model_outline.h"
#include "xnn/packer.h"
#include "xnn/packing.h"

namespace cria::xnn {
namespace {

// Memory for the slices of a matrix, one after another.
class MemorySink final : public PackingSink {
 public:
  explicit MemorySink(std::span<std::byte> place) : rest_(place) {}

  Result<std::span<std::byte>> Reserve(uint64_t bytes) override {
    if (bytes <= rest_.size()) return rest_.first(bytes);
    return Fail(ErrorCode::kInternal, "packed weights are larger than was planned");
  }
  Status Take(std::span<const std::byte> packed) override {
    rest_ = rest_.subspan(packed.size());
    return {};
  }

 private:
  std::span<std::byte> rest_;
};

}  // namespace

Status CheckIsPortable(const ModelFile& model) {
  if (model.packed_offset() == 0) return {};
  return Fail(ErrorCode::kUsage,
              Format("{}: already has packed weights; pack the model file from which it was made",
                     model.path()));
}

Result<PackedWeights> PackedWeights::Map(const ModelFile& model, const PackedFile& file) {
  const PackedIdentity& identity = file.identity();
  if (identity.model_digest != model.packing_digest()) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: was packed from another model ({}) than {}", file.path(),
                       identity.model_name, model.path()),
                RemedyKind::kPack);
  }
  CRIA_ASSIGN_OR_RETURN(const uint64_t fingerprint, LayoutFingerprint());
  if (identity.layout_fingerprint != fingerprint) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: was packed for another processor ({}) or another XNNPACK", file.path(),
                       identity.processor),
                model.packed_offset() == 0 ? RemedyKind::kPack : RemedyKind::kPackStandalone);
  }
  const std::vector<TensorLayout> layouts = OutlineOf(model).matrices;
  CRIA_ASSIGN_OR_RETURN(const std::vector<uint64_t> matrix_bytes, PackedBytes(layouts));
  PackedWeights weights;
  const FileRange range = file.weights();
  CRIA_ASSIGN_OR_RETURN(weights.mapping_, file.Map(range));
  for (const PackedMatrix& matrix : file.matrices()) {
    weights.matrices_.push_back(
        weights.mapping_.bytes().subspan(matrix.range.offset - range.offset, matrix.range.bytes));
  }
  if (!std::ranges::equal(weights.matrices_, matrix_bytes, {},
                          [](std::span<const std::byte> matrix) { return matrix.size(); })) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: its matrices do not have the sizes of the model's", file.path()),
                RemedyKind::kPack);
  }
  if (!model.is_mappable()) return weights;
  for (size_t i = 0; i < layouts.size(); ++i) {
    // Only the experts that a token chooses are read.
    if (layouts[i].num_parts > 1) platform::ExpectUseInNoOrder(weights.matrices_[i]);
  }
  return weights;
}

Result<PackedWeights> PackedWeights::PackInMemory(const ModelFile& model, const ThreadPool& pool,
                                                  const PackingProgress& progress) {
  CRIA_RETURN_IF_ERROR(CheckIsPortable(model));
  // Fails if concatenated slices of rows are not the same as the whole packed matrix.
  CRIA_RETURN_IF_ERROR(LayoutFingerprint());
  CRIA_ASSIGN_OR_RETURN(const std::vector<uint64_t> matrix_bytes,
                        PackedBytes(OutlineOf(model).matrices));
  std::vector<uint64_t> offsets;
  uint64_t total_bytes = 0;
  for (const uint64_t bytes : matrix_bytes) {
    offsets.push_back(total_bytes);
    total_bytes += AlignUp(bytes, kPackedAlignment);
  }
  PackedWeights weights;
  CRIA_ASSIGN_OR_RETURN(weights.block_,
                        platform::PageBlock::Allocate(total_bytes + kTrailingSlackBytes));
  const std::span<std::byte> memory = weights.block_.bytes();
  Packer packer(model, pool, progress);
  CRIA_RETURN_IF_ERROR(packer.ForEachMatrix([&](size_t index) {
    MemorySink sink(memory.subspan(offsets[index], matrix_bytes[index]));
    return packer.PackMatrix(index, sink);
  }));
  for (size_t i = 0; i < offsets.size(); ++i) {
    weights.matrices_.push_back(memory.subspan(offsets[i], matrix_bytes[i]));
  }
  return weights;
}

}  // namespace cria::xnn
