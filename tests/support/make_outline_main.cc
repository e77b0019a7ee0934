// cria-make-outline: writes a model file of any size in a moment, for plans: its metadata is that
// of a config.json, and its weights are a hole in the file. It can be planned, but not run.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/messages.h"
#include "converter/hugging_face/hf_config.h"
#include "converter/write/file_plan.h"
#include "converter/write/metadata.h"
#include "model/file_layout.h"

namespace cria {
namespace {

Status MakeOutline(const std::filesystem::path& config_path, const std::string& output,
                   const TensorSchemes& schemes) {
  CRIA_ASSIGN_OR_RETURN(const HfModel model, ReadHfModel(config_path));
  const ModelConfig& config = model.config;
  std::vector<MappedTensor> tensors;
  for (const TensorSpec& spec : ExpectedTensors(config)) tensors.push_back({.spec = spec});
  FilePlan plan = PlanTensors(std::move(tensors), config, schemes);
  // Pieces that no text becomes.
  const std::vector<uint32_t> offsets(size_t{config.vocab_size} + 1);
  const std::vector<PieceType> types(config.vocab_size, PieceType::kUnused);
  ModelDescription description = {.producer = "cria-make-outline",
                                  .name = output,
                                  .config = config,
                                  .vocabulary = {},
                                  .chat_template_source = {},
                                  .stop_token_ids = {}};
  description.vocabulary.piece_offsets = offsets;
  description.vocabulary.piece_types = types;
  description.vocabulary.merge_offsets = offsets;
  PlaceTensors(BuildMetadata(description, plan).size(), plan);
  const std::vector<std::byte> metadata = BuildMetadata(description, plan);
  FilePreamble preamble = {.metadata_bytes = metadata.size(),
                           .file_bytes = plan.file_bytes,
                           .metadata_digest = Digest128(metadata)};
  preamble.preamble_checksum = PreambleChecksum(preamble);
  std::FILE* const file = std::fopen(output.c_str(), "wb");
  const bool is_written = file != nullptr &&
                          std::fwrite(&preamble, sizeof preamble, 1, file) == 1 &&
                          std::fwrite(metadata.data(), metadata.size(), 1, file) == 1;
  if (file != nullptr) std::fclose(file);
  std::error_code error;
  if (is_written) std::filesystem::resize_file(output, plan.file_bytes, error);
  if (is_written && !error) return {};
  return Fail(ErrorCode::kIo, output + ": cannot be written");
}

Status Main(int argc, char** argv) {
  cli::CommandLine command("cria-make-outline", "Writes a model file whose weights are a hole.");
  std::string config_path;
  std::string output;
  TensorSchemes schemes;
  command.AddText("CONFIG", config_path, "The config.json").Required();
  command.AddText("-o,--output", output, "The file to write").Required();
  command
      .AddChoice("--weights", schemes.weights,
                 {{"f32", Scheme::kF32}, {"int8", Scheme::kQc8w}, {"int4", Scheme::kQb4w}},
                 "Scheme of the weights")
      .Default("int4");
  command.SetAction([&] { return MakeOutline(config_path, output, schemes); });
  return command.Run(std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace
}  // namespace cria

int main(int argc, char** argv) {
  const cria::Status status = cria::Main(argc, argv);
  if (status) return 0;
  return cria::cli::ReportError("cria-make-outline", status.error());
}
