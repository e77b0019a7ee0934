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

// Writes the preamble and the metadata; the result is the model's digest.
Result<Digest> WriteMetadata(const ModelDescription& description, const FilePlan& plan,
                             OutputFile& file) {
  const std::vector<std::byte> metadata = BuildMetadata(description, plan);
  FilePreamble preamble = {.metadata_bytes = metadata.size(),
                           .file_bytes = plan.file_bytes,
                           .metadata_digest = Digest128(metadata)};
  if (sizeof preamble + metadata.size() > plan.sections[0].offset) {
    return Fail(ErrorCode::kInternal, "the metadata grew into the tensors that were written");
  }
  preamble.preamble_checksum = PreambleChecksum(preamble);
  CRIA_RETURN_IF_ERROR(file.WriteAt(sizeof preamble, metadata));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(&preamble, 1))));
  return preamble.metadata_digest;
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

  CRIA_ASSIGN_OR_RETURN(const Digest digest, WriteMetadata(description, plan, file));
  return WrittenModel{.file = std::move(file), .digest = digest, .errors = std::move(errors)};
}

Status RewriteMetadata(const ModelDescription& description, const FilePlan& plan,
                       WrittenModel& written) {
  CRIA_ASSIGN_OR_RETURN(written.digest, WriteMetadata(description, plan, written.file));
  return {};
}

}  // namespace cria
