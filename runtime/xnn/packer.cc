#include "xnn/packer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/format.h"
#include "model/file_layout.h"
#include "xnn/packing.h"

namespace cria::xnn {

Packer::Packer(const ModelFile& model, const ThreadPool& pool, const PackingProgress& progress)
    : model_(model), pool_(pool), progress_(progress), matrices_(MultipliedMatrices(model)) {
  for (const StoredTensor* matrix : matrices_) {
    total_bytes_ += matrix->data.bytes + matrix->scales.bytes;
  }
}

Status Packer::ForEachMatrix(const std::function<Status(size_t index)>& pack_matrix) {
  std::vector<size_t> order(matrices_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t index) { return matrices_[index]->data.bytes; });
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  Status failure;
  size_t failed_index = matrices_.size();
  // One task for each thread, because a pool would divide the matrices into ranges instead of
  // handing out the largest first.
  pool_.ParallelFor(pool_.num_threads(), [&](size_t) {
    for (size_t i = next++; i < order.size() && !has_failed; i = next++) {
      const size_t index = order[i];
      Status status = pack_matrix(index);
      if (status) continue;
      const std::lock_guard lock(mutex_);
      has_failed = true;
      if (index >= failed_index) continue;
      failed_index = index;
      failure = std::move(status);
    }
  });
  return failure;
}

Status Packer::PackMatrix(size_t index, PackingSink& sink) {
  const StoredTensor& tensor = *matrices_[index];
  platform::FileMapping scales;
  if (tensor.part == nullptr) {
    CRIA_ASSIGN_OR_RETURN(scales, model_.Map(tensor.scales));
  }
  Checksum64 checksum;
  const TensorLayout part = tensor.layout.Part();
  uint64_t part_padding = 0;
  if (tensor.layout.num_parts > 1) {
    CRIA_ASSIGN_OR_RETURN(const uint64_t part_bytes, PackedBytes(part));
    part_padding = PackedPartStride(tensor.layout, part_bytes) - part_bytes;
  }
  const size_t part_rows = part.output_channels;
  for (size_t row = 0, rows = 0; row < tensor.layout.output_channels; row += rows) {
    const size_t rows_left = part_rows - row % part_rows;
    rows = NextSliceRows(part, rows_left, kMaxSliceBytes);
    const uint64_t padding = rows == rows_left ? part_padding : 0;
    CRIA_RETURN_IF_ERROR(PackSlice(tensor, scales, row, rows, padding, checksum, sink));
  }
  // The checksum is of the whole tensor, of which other ranks read the rest.
  if (tensor.part != nullptr) return {};
  checksum.Update(scales.bytes());
  if (checksum.Finish() == tensor.checksum) return {};
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: the weights of {} are damaged (checksum does not match); copy or "
                     "convert the file again",
                     model_.path(), tensor.spec.Name()));
}

Status Packer::PackSlice(const StoredTensor& tensor, const platform::FileMapping& scales,
                         size_t first_row, size_t rows, uint64_t padding, Checksum64& checksum,
                         PackingSink& sink) {
  LinearWeights slice = {.layout = tensor.layout.Part()};
  slice.layout.output_channels = rows;
  const uint64_t data_bytes = slice.layout.data_bytes();
  platform::FileMapping data;
  platform::PageBlock copy;
  if (tensor.part == nullptr) {
    // Mapped with the slack that kernels may read, which is at the end of every file, too.
    CRIA_ASSIGN_OR_RETURN(data,
                          model_.Map({tensor.data.offset + first_row * tensor.layout.row_bytes(),
                                      data_bytes + kTrailingSlackBytes}));
    slice.data = data.bytes().first(data_bytes);
    slice.scales = scales.bytes().subspan(first_row * tensor.layout.row_scale_bytes(),
                                          slice.layout.scale_bytes());
  } else {
    const uint64_t scale_bytes = slice.layout.scale_bytes();
    const uint64_t data_offset = AlignUp(scale_bytes, kTensorAlignment);
    CRIA_ASSIGN_OR_RETURN(
        copy, platform::PageBlock::Allocate(data_offset + data_bytes + kTrailingSlackBytes));
    const std::span<std::byte> data_copy = copy.bytes().subspan(data_offset, data_bytes);
    const std::span<std::byte> scales_copy = copy.bytes().first(scale_bytes);
    CRIA_RETURN_IF_ERROR(tensor.part->Read(model_, first_row, rows, data_copy, scales_copy));
    slice.data = data_copy;
    slice.scales = scales_copy;
  }
  checksum.Update(slice.data);
  CRIA_ASSIGN_OR_RETURN(const uint64_t packed_bytes, PackedBytes(slice.layout));
  CRIA_ASSIGN_OR_RETURN(const std::span<std::byte> packed, sink.Reserve(packed_bytes + padding));
  if (Status status = Pack(slice, packed.first(packed_bytes)); !status) {
    return Fail(status.error().code(),
                Format("{}: {}: {}; its weights may be damaged", model_.path(), tensor.spec.Name(),
                       status.error().message()),
                RemedyKind::kCheckFile);
  }
  CRIA_RETURN_IF_ERROR(sink.Take(packed));
  return Report(tensor, data_bytes + slice.scales.size());
}

Status Packer::Report(const StoredTensor& tensor, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_bytes_ += bytes;
  if (progress_ == nullptr || progress_(done_bytes_, total_bytes_, tensor.spec.Name())) return {};
  return Fail(ErrorCode::kCancelled, "packing was stopped");
}

}  // namespace cria::xnn
