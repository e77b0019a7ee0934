#include "converter/open_checkpoint.h"

#include <string>
#include <system_error>

#include "converter/checkpoint/fold_weights.h"
#include "converter/gguf/gguf_checkpoint.h"
#include "converter/hugging_face/hf_checkpoint.h"
#include "converter/llama2c/llama2c_checkpoint.h"
#include "converter/meta/meta_checkpoint.h"
#include "core/format.h"
#include "model/path_contents.h"

namespace cria {
namespace {

Result<PathContents> Inspect(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status)) return InspectPath(path.string());
  if (status.type() == std::filesystem::file_type::not_found) {
    return Fail(ErrorCode::kNotFound, Format("{}: does not exist", path.string()));
  }
  return Fail(ErrorCode::kIo, Format("{}: cannot open: {}", path.string(), error.message()));
}

// What to give instead of these contents, as the end of a sentence.
std::string WhatToGive(const PathContents& contents) {
  switch (contents.kind) {
    case ContentKind::kModel:
      return "already, which needs no conversion";
    case ContentKind::kModelFolder:
      return "; model files need no conversion";
    case ContentKind::kPackedWeights:
      return "; give the checkpoint";
    case ContentKind::kGgufFolder:
      return contents.names.size() == 1
                 ? Format("; give that file, {}", contents.checkpoint)
                 : Format(
                       "; give one of them, such as {}, which is the largest and so was "
                       "changed least when it was quantized",
                       contents.checkpoint);
    case ContentKind::kEmptyFolder:
    case ContentKind::kOtherFolder:
      return "; the folder of a checkpoint has config.json or params.json, and the weights";
    default:
      break;
  }
  if (!contents.checkpoint.empty()) {
    return Format("; give the checkpoint's folder, {}", contents.checkpoint);
  }
  return Format("; {}", HowToGetCheckpoint(contents));
}

std::unexpected<Error> Refuse(const std::filesystem::path& path, const PathContents& contents) {
  if (contents.kind == ContentKind::kUnknown) {
    return Fail(
        ErrorCode::kUnsupported,
        Format("{}: is neither a GGUF file nor a llama2.c model; for other checkpoints, give the "
               "folder with config.json or params.json and the weights",
               path.string()));
  }
  const std::string what = WhatToGive(contents);
  return Fail(ErrorCode::kUnsupported, Format("{}: {}{}{}", path.string(), ContentsText(contents),
                                              what.starts_with(';') ? "" : " ", what));
}

Result<Checkpoint> OpenUnfolded(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const PathContents contents, Inspect(path));
  switch (contents.kind) {
    case ContentKind::kHuggingFaceFolder:
      return OpenHfCheckpoint(path);
    case ContentKind::kMetaFolder:
      return OpenMetaCheckpoint(path);
    case ContentKind::kGguf:
      return OpenGgufCheckpoint(path);
    case ContentKind::kLlama2c:
      return OpenLlama2cCheckpoint(path);
    default:
      return Refuse(path, contents);
  }
}

}  // namespace

Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(Checkpoint checkpoint, OpenUnfolded(path));
  FoldIntoWeights(checkpoint);
  return checkpoint;
}

Result<CheckpointVocabulary> OpenVocabulary(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const PathContents contents, Inspect(path));
  switch (contents.kind) {
    case ContentKind::kHuggingFaceFolder:
    case ContentKind::kOtherFolder:  // A tokenizer needs no config.json.
      return OpenHfVocabulary(path);
    case ContentKind::kMetaFolder:
      return OpenMetaVocabulary(path);
    case ContentKind::kGguf:
      return OpenGgufVocabulary(path);
    case ContentKind::kLlama2c: {
      CRIA_ASSIGN_OR_RETURN(Checkpoint checkpoint, OpenLlama2cCheckpoint(path));
      return CheckpointVocabulary{checkpoint.name, *std::move(checkpoint.tokenizer)};
    }
    default:
      return Refuse(path, contents);
  }
}

}  // namespace cria
