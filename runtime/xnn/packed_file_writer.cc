#include "xnn/packed_file_writer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/output_file.h"
#include "model/file_layout.h"
#include "model/model_outline.h"
#include "xnn/packer.h"
#include "xnn/packing.h"

namespace cria::xnn {
namespace {

// Writes the slices of a matrix one after another.
class FileSink final : public PackingSink {
 public:
  FileSink(OutputFile& file, uint64_t offset) : file_(file), offset_(offset) {}

  Result<std::span<std::byte>> Reserve(uint64_t bytes) override {
    // New pages are zeros, so that padding in a kernel's layout is the same in every file.
    slice_ = {};
    CRIA_ASSIGN_OR_RETURN(slice_, platform::PageBlock::Allocate(bytes));
    return slice_.bytes();
  }
  Status Take(std::span<const std::byte> packed) override {
    checksum_.Update(packed);
    return file_.WriteAt(std::exchange(offset_, offset_ + packed.size()), packed);
  }
  uint64_t checksum() const { return checksum_.Finish(); }

 private:
  OutputFile& file_;
  uint64_t offset_;
  platform::PageBlock slice_;
  Checksum64 checksum_;
};

// Where the portable weights begin, after everything that a standalone file keeps.
Result<uint64_t> PortableWeightsOffset(const ModelFile& model) {
  uint64_t first_weight = model.size_bytes();
  uint64_t end_of_rest = 0;
  for (const StoredTensor& tensor : model.tensors()) {
    if (tensor.spec.is_multiplied()) {
      first_weight = std::min(first_weight, tensor.data.offset);
    } else {
      end_of_rest = std::max({end_of_rest, tensor.data.offset + tensor.data.bytes,
                              tensor.scales.offset + tensor.scales.bytes});
    }
  }
  if (end_of_rest <= first_weight && first_weight % kSectionAlignment == 0) return first_weight;
  return Fail(ErrorCode::kUnsupported,
              Format("{}: the weights are not the last section; convert the "
                     "checkpoint again",
                     model.path()));
}

// Copies everything before `packed_offset`, with a preamble that points to the packed weights
// there.
Status CopyPortablePart(const ModelFile& model, uint64_t packed_offset, OutputFile& file) {
  constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
  std::vector<std::byte> piece(std::min(kPieceBytes, packed_offset));
  for (uint64_t offset = 0; offset < packed_offset; offset += piece.size()) {
    const uint64_t bytes = std::min<uint64_t>(piece.size(), packed_offset - offset);
    const std::span<std::byte> part = std::span(piece).first(bytes);
    CRIA_RETURN_IF_ERROR(model.Read({offset, bytes}, part));
    if (offset == 0) {
      FilePreamble preamble;
      std::memcpy(&preamble, part.data(), sizeof preamble);
      preamble.packed_offset = packed_offset;
      preamble.preamble_checksum = PreambleChecksum(preamble);
      std::memcpy(part.data(), &preamble, sizeof preamble);
    }
    CRIA_RETURN_IF_ERROR(file.WriteAt(offset, part));
  }
  return {};
}

// PackedIdentity::layer_schemes.
uint8_t LayerSchemes(const ModelFile& model) {
  // The bits behind those of XNNPACK's schemes: any format of GGML, w4g64, and the others.
  const auto bit_of = [](Scheme scheme) -> uint32_t {
    const int number = static_cast<int>(scheme);
    if (number < kNumXnnpackSchemes) return static_cast<uint32_t>(number);
    if (IsGgmlFormat(scheme)) return 3;
    return scheme == Scheme::kW4G64 ? 4 : 5;
  };
  uint32_t schemes = 0;
  for (const StoredTensor& tensor : model.tensors()) {
    if (tensor.spec.layer == kNoLayer || tensor.spec.is_always_f32()) continue;
    schemes |= 1u << bit_of(tensor.layout.scheme);
  }
  return static_cast<uint8_t>(schemes);
}

// Writes packed weights that begin at `offset`; `write_rest` writes everything before them.
template <typename WriteRest>
Result<WrittenPack> Write(const ModelFile& model, uint64_t offset, const std::string& path,
                          LinkPolicy links, const PackTarget& target, const ThreadPool& pool,
                          const PackingProgress& progress, const WriteRest& write_rest) {
  std::error_code error;  // For a path that does not exist yet.
  const bool replaces_link =
      links == LinkPolicy::kReplaceLink && std::filesystem::is_symlink(path, error);
  if (!replaces_link && std::filesystem::equivalent(path, model.path(), error)) {
    return Fail(
        ErrorCode::kUsage,
        Format("{}: is the model itself, which would be overwritten; choose another output", path));
  }
  const std::vector<TensorLayout> matrices = OutlineOf(model).matrices;
  CRIA_ASSIGN_OR_RETURN(const std::vector<uint64_t> matrix_bytes, PackedBytes(matrices));
  std::vector<bool> begins_section;
  begins_section.reserve(matrices.size());
  for (const TensorLayout& matrix : matrices) begins_section.push_back(matrix.num_parts > 1);
  PackedFilePlan plan({.model_name = std::string(model.name()),
                       .processor = target.processor,
                       .model_digest = model.packing_digest(),
                       .layout_fingerprint = target.layout_fingerprint,
                       .layer_schemes = LayerSchemes(model)},
                      matrix_bytes, offset, begins_section);
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, plan.file_bytes(), links));
  CRIA_RETURN_IF_ERROR(write_rest(file));
  Packer packer(model, pool, progress);
  const auto pack_matrix = [&](size_t index) {
    PackedMatrix& matrix = plan.matrices()[index];
    FileSink sink(file, matrix.range.offset);
    Status packed = packer.PackMatrix(index, sink);
    matrix.checksum = sink.checksum();
    return packed;
  };
  CRIA_RETURN_IF_ERROR(packer.ForEachMatrix(pack_matrix));
  CRIA_RETURN_IF_ERROR(file.WriteAt(offset, plan.Head()));
  CRIA_RETURN_IF_ERROR(file.Commit());
  return WrittenPack{.file_bytes = plan.file_bytes()};
}

Result<WrittenPack> WritePackedAlone(const ModelFile& model, const std::string& path,
                                     LinkPolicy links, const PackTarget& target,
                                     const ThreadPool& pool, const PackingProgress& progress) {
  CRIA_RETURN_IF_ERROR(CheckIsPortable(model));
  return Write(model, 0, path, links, target, pool, progress, [](OutputFile&) { return Status(); });
}

}  // namespace

Result<PackTarget> ThisProcessor() {
  CRIA_ASSIGN_OR_RETURN(const uint64_t fingerprint, LayoutFingerprint());
  return PackTarget{platform::ReadCpuTopology().name, fingerprint};
}

Result<std::optional<PackTarget>> TargetInPlaceOf(const KnownLayout& known,
                                                  const ModelFile& model) {
  CRIA_ASSIGN_OR_RETURN(const SchemeFingerprints own, FingerprintSchemes());
  for (const TensorLayout& matrix : OutlineOf(model).matrices) {
    if (matrix.is_plain || matrix.block_format() != nullptr) continue;
    const auto scheme = static_cast<size_t>(matrix.scheme);
    if (own[scheme] != known.fingerprints[scheme]) return std::nullopt;
  }
  return PackTarget{std::string(known.processor), LayoutFingerprint(known.fingerprints)};
}

Result<WrittenPack> WritePackedFile(const ModelFile& model, const std::string& path,
                                    const PackTarget& target, const ThreadPool& pool,
                                    const PackingProgress& progress) {
  return WritePackedAlone(model, path, LinkPolicy::kReplaceTarget, target, pool, progress);
}

Result<WrittenPack> ReplacePackedFile(const ModelFile& model, const std::string& path,
                                      const PackTarget& target, const ThreadPool& pool,
                                      const PackingProgress& progress) {
  return WritePackedAlone(model, path, LinkPolicy::kReplaceLink, target, pool, progress);
}

Result<WrittenPack> WriteStandaloneFile(const ModelFile& model, const std::string& path,
                                        const PackTarget& target, const ThreadPool& pool,
                                        const PackingProgress& progress) {
  CRIA_RETURN_IF_ERROR(CheckIsPortable(model));
  CRIA_ASSIGN_OR_RETURN(const uint64_t offset, PortableWeightsOffset(model));
  CRIA_ASSIGN_OR_RETURN(WrittenPack written, Write(model, offset, path, LinkPolicy::kReplaceTarget,
                                                   target, pool, progress, [&](OutputFile& file) {
                                                     return CopyPortablePart(model, offset, file);
                                                   }));
  // A tied head is the embedding table.
  const StoredTensor& head = model.tensor(TensorRole::kLmHead);
  if (head.spec.role == TensorRole::kEmbedTokens)
    written.doubled_bytes = head.data.bytes + head.scales.bytes;
  return written;
}

uint64_t PackingPeakBytes(std::span<const TensorLayout> matrices, size_t num_threads) {
  uint64_t slice_bytes = 0;
  for (const TensorLayout& matrix : matrices) {
    slice_bytes = std::max(slice_bytes, LargestSliceBytes(matrix, Packer::kMaxSliceBytes));
  }
  return num_threads * slice_bytes;
}

}  // namespace cria::xnn
