#include "converter/open_checkpoint.h"

#include <format>
#include <system_error>

#include "converter/gguf/gguf_checkpoint.h"
#include "converter/gguf/gguf_file.h"
#include "converter/hugging_face/hf_checkpoint.h"
#include "converter/llama2c/llama2c_checkpoint.h"
#include "converter/meta/meta_checkpoint.h"

namespace cria {
namespace {

Result<bool> IsFolder(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status)) return std::filesystem::is_directory(status);
  if (status.type() == std::filesystem::file_type::not_found) {
    return Fail(ErrorCode::kNotFound, std::format("{}: does not exist", path.string()));
  }
  return Fail(ErrorCode::kIo, std::format("{}: cannot open: {}", path.string(), error.message()));
}

std::unexpected<Error> UnknownFile(const std::filesystem::path& path) {
  return Fail(
      ErrorCode::kUnsupported,
      std::format(
          "{}: is neither a GGUF file nor a llama2.c model; for other checkpoints, give the "
          "folder with config.json or params.json and the weights",
          path.string()));
}

}  // namespace

Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const bool is_folder, IsFolder(path));
  if (is_folder) return IsMetaFolder(path) ? OpenMetaCheckpoint(path) : OpenHfCheckpoint(path);
  if (IsGgufFile(path)) return OpenGgufCheckpoint(path);
  if (IsLlama2cFile(path)) return OpenLlama2cCheckpoint(path);
  return UnknownFile(path);
}

Result<CheckpointVocabulary> OpenVocabulary(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const bool is_folder, IsFolder(path));
  if (is_folder) return IsMetaFolder(path) ? OpenMetaVocabulary(path) : OpenHfVocabulary(path);
  if (IsGgufFile(path)) return OpenGgufVocabulary(path);
  if (IsLlama2cFile(path)) {
    CRIA_ASSIGN_OR_RETURN(Checkpoint checkpoint, OpenLlama2cCheckpoint(path));
    return CheckpointVocabulary{checkpoint.name, *std::move(checkpoint.tokenizer)};
  }
  return UnknownFile(path);
}

}  // namespace cria
