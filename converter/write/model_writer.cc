#include "converter/write/model_writer.h"

#include <span>
#include <utility>

#include "converter/write/tensor_streamer.h"
#include "core/format.h"
#include "model/file_layout.h"

namespace cria {
namespace {

uint64_t CountWeights(const FilePlan& plan) {
  uint64_t weights = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    weights += uint64_t{tensor.stored.spec.output_channels} * tensor.stored.spec.input_channels;
  }
  return weights;
}

}  // namespace

Result<WrittenModel> WriteModel(const ModelDescription& description, FilePlan& plan,
                                const std::filesystem::path& path, const ThreadPool& threads,
                                const ProgressCallback& progress) {
  const size_t metadata_bytes = BuildMetadata(description, plan).size();
  if (metadata_bytes > kMaxMetadataBytes) {
    return Fail(ErrorCode::kUnsupported,
                Format("the vocabulary takes {} bytes of metadata, more than the {} that a "
                       "model file may have",
                       metadata_bytes, kMaxMetadataBytes));
  }
  PlaceTensors(metadata_bytes, plan);

  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, plan.file_bytes));
  TensorStreamer streamer(file, threads, progress, CountWeights(plan));
  std::vector<QuantizationError> errors;
  for (PlannedTensor& tensor : plan.tensors) {
    CRIA_ASSIGN_OR_RETURN(const QuantizationError error, streamer.Stream(tensor));
    errors.push_back(error);
  }

  const std::vector<std::byte> metadata = BuildMetadata(description, plan);
  if (metadata.size() != metadata_bytes) {
    return Fail(ErrorCode::kInternal, "the metadata changed its size while tensors were written");
  }
  FilePreamble preamble = {.metadata_bytes = metadata.size(),
                           .file_bytes = plan.file_bytes,
                           .metadata_digest = Digest128(metadata)};
  preamble.preamble_checksum = PreambleChecksum(preamble);
  CRIA_RETURN_IF_ERROR(file.WriteAt(sizeof preamble, metadata));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(&preamble, 1))));
  return WrittenModel{
      .file = std::move(file), .digest = preamble.metadata_digest, .errors = std::move(errors)};
}

}  // namespace cria
