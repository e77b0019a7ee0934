#include "converter/write/tensor_streamer.h"

#include <algorithm>

namespace cria {
namespace {

// 1 MiB of floats, so that all buffers together are a few megabytes for each thread.
constexpr size_t kSliceElements = size_t{1} << 18;
// More than one, so that threads of different speed share the work evenly.
constexpr size_t kSlicesPerThread = 4;

}  // namespace

TensorStreamer::TensorStreamer(OutputFile& file, const ThreadPool& threads,
                               const ProgressCallback& progress, uint64_t total_weights)
    : file_(file),
      threads_(threads),
      progress_(progress),
      total_weights_(total_weights),
      workspaces_(threads.num_threads() * kSlicesPerThread) {}

std::vector<TensorStreamer::Slice> TensorStreamer::MakeSlices(const PlannedTensor& tensor) {
  std::vector<Slice> slices;
  for (const MappedPart& part : tensor.parts) {
    TensorLayout layout = tensor.stored.layout;
    if (tensor.stored.spec.is_vector()) {
      layout.input_channels = layout.padded_input_channels = part.source->num_elements();
    }
    const size_t max_rows = std::max<size_t>(1, kSliceElements / layout.input_channels);
    const uint64_t num_rows = part.source->num_elements() / layout.input_channels;
    for (uint64_t row = 0; row < num_rows; row += max_rows) {
      const uint64_t rows = std::min<uint64_t>(max_rows, num_rows - row);
      slices.push_back({&part, row, static_cast<size_t>(rows), layout, tensor.keeps_codes});
    }
  }
  return slices;
}

void TensorStreamer::ConvertSlice(const Slice& slice, Workspace& workspace) {
  const TensorLayout& layout = slice.layout;
  const size_t input_channels = layout.input_channels;
  workspace.values.resize(slice.num_rows * input_channels);
  workspace.row.assign(layout.padded_input_channels, 0.0f);
  workspace.data.resize(slice.num_rows * layout.row_bytes());
  workspace.scales.resize(slice.num_rows * layout.row_scale_bytes());
  workspace.error = {};
  workspace.status = workspace.reader.Read(*slice.part->source, slice.first_row * input_channels,
                                           workspace.values);
  if (!workspace.status) return;
  if (slice.keeps_codes) {
    std::ranges::copy(workspace.reader.stored(), workspace.data.begin());
    workspace.error = ErrorOfKept(workspace.values);
    return;
  }
  ApplyFactors(*slice.part, slice.first_row, input_channels, workspace.values);

  RowQuantizer quantizer(layout);
  for (size_t i = 0; i < slice.num_rows; ++i) {
    const auto values = std::span(workspace.values).subspan(i * input_channels, input_channels);
    std::ranges::copy(values, workspace.row.begin());
    workspace.error += quantizer.Quantize(
        workspace.row,
        std::span(workspace.data).subspan(i * layout.row_bytes(), layout.row_bytes()),
        std::span(workspace.scales)
            .subspan(i * layout.row_scale_bytes(), layout.row_scale_bytes()));
  }
}

Result<QuantizationError> TensorStreamer::Stream(PlannedTensor& tensor) {
  StoredTensor& stored = tensor.stored;
  if (tensor.encoded) return Copy(*tensor.encoded, stored);
  const std::vector<Slice> slices = MakeSlices(tensor);
  QuantizationError error;
  Checksum64 checksum;
  uint64_t offset = stored.data.offset;
  std::vector<std::byte> scales;
  scales.reserve(stored.scales.bytes);
  for (size_t first = 0; first < slices.size(); first += workspaces_.size()) {
    const size_t count = std::min(workspaces_.size(), slices.size() - first);
    threads_.ParallelFor(count, [&](size_t i) { ConvertSlice(slices[first + i], workspaces_[i]); });
    uint64_t weights = 0;
    for (size_t i = 0; i < count; ++i) {
      const Workspace& workspace = workspaces_[i];
      CRIA_RETURN_IF_ERROR(workspace.status);
      CRIA_RETURN_IF_ERROR(file_.WriteAt(offset, workspace.data));
      checksum.Update(workspace.data);
      offset += workspace.data.size();
      scales.insert(scales.end(), workspace.scales.begin(), workspace.scales.end());
      error += workspace.error;
      weights += workspace.values.size();
    }
    CRIA_RETURN_IF_ERROR(ReportProgress(stored, weights));
  }
  CRIA_RETURN_IF_ERROR(file_.WriteAt(stored.scales.offset, scales));
  checksum.Update(scales);
  stored.checksum = checksum.Finish();
  return error;
}

Result<QuantizationError> TensorStreamer::Copy(const EncodedTensor& encoded, StoredTensor& stored) {
  constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
  Checksum64 checksum;
  std::vector<std::byte> piece;
  const auto copy = [&](uint64_t source, const FileRange& target) -> Status {
    for (uint64_t done = 0; done < target.bytes; done += piece.size()) {
      piece.resize(std::min(kPieceBytes, target.bytes - done));
      CRIA_RETURN_IF_ERROR(encoded.file->ReadAt(source + done, piece));
      CRIA_RETURN_IF_ERROR(file_.WriteAt(target.offset + done, piece));
      checksum.Update(piece);
    }
    return {};
  };
  CRIA_RETURN_IF_ERROR(copy(encoded.data_offset, stored.data));
  CRIA_RETURN_IF_ERROR(copy(encoded.scale_offset, stored.scales));
  stored.checksum = checksum.Finish();
  CRIA_RETURN_IF_ERROR(
      ReportProgress(stored, uint64_t{stored.spec.output_channels} * stored.spec.input_channels));
  return encoded.error;
}

Status TensorStreamer::ReportProgress(const StoredTensor& tensor, uint64_t weights) {
  done_weights_ += weights;
  if (progress_ == nullptr) return {};
  const std::string name = tensor.spec.Name();
  if (progress_({name, done_weights_, total_weights_})) return {};
  return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
}

}  // namespace cria
