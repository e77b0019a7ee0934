// Writes the checkpoints of family_checkpoint.h.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/byte_level_tokenizer.h"
#include "support/family_checkpoint.h"
#include "support/family_gguf.h"
#include "support/files.h"

namespace cria::support {
namespace {

using nlohmann::json;

// Large tables are made and written by pieces: that of Gemma 4 E2B would take 9 GB.
constexpr size_t kPieceElements = size_t{1} << 26;

size_t PieceAt(const TensorShape& tensor, size_t first) {
  return std::min(kPieceElements, tensor.elements() - first);
}

// Whether it has a row for each token. No writer changes the order or the values of such a tensor.
bool IsTable(std::string_view name) {
  return name.ends_with("embed_tokens.weight") || name.ends_with("embed_tokens_per_layer.weight");
}

}  // namespace

void WriteFamilyDirectory(const FamilyCheckpoint& checkpoint,
                          const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  json config = json::parse(checkpoint.config_json);
  const json& text = config.contains("text_config") ? config["text_config"] : config;
  const ByteLevelTokenizer tokenizer = MakeByteLevelTokenizer(text.at("vocab_size").get<size_t>());
  const json ids = {{"bos_token_id", tokenizer.SpecialTokenId("<|begin_of_text|>")},
                    {"eos_token_id", tokenizer.SpecialTokenId("<|end_of_text|>")}};
  config.update(ids);
  WriteFile(directory / "config.json", config.dump(1));
  WriteFile(directory / "generation_config.json", ids.dump(1));
  const std::vector<TensorShape> tensors = FamilyTensors(checkpoint);
  SafetensorsWriter writer(directory / "model.safetensors", checkpoint.storage, tensors);
  for (const TensorShape& tensor : tensors) {
    for (size_t first = 0; first < tensor.elements(); first += kPieceElements) {
      writer.Write(FamilyValues(checkpoint, tensor, first, PieceAt(tensor, first)));
    }
  }
  writer.Finish();
  WriteFile(directory / "tokenizer.json", TokenizerJson(tokenizer, false));
  WriteFile(directory / "tokenizer_config.json", TokenizerConfigJson(ChatTemplateText::kNone));
}

void WriteFamilyGguf(const FamilyCheckpoint& checkpoint, const std::filesystem::path& path,
                     bool rounds_matrices) {
  if (checkpoint.gguf_architecture.empty()) {
    throw std::runtime_error("no GGUF file can say what " + checkpoint.name + " computes");
  }
  FamilyGgufWriter writer(checkpoint.gguf_architecture, checkpoint.config_json);
  writer.writer().rounds_matrices = rounds_matrices;
  const auto values = [&](const TensorShape& tensor, size_t first, size_t count) {
    std::vector<float> piece = FamilyValues(checkpoint, tensor, first, count);
    if (!tensor.is_bytes) RoundTo(checkpoint.storage, piece);
    return piece;
  };
  for (const TensorShape& tensor : FamilyTensors(checkpoint)) {
    const size_t elements = tensor.elements();
    const size_t first_piece = IsTable(tensor.name) ? PieceAt(tensor, 0) : elements;
    writer.Add({tensor.shape, values(tensor, 0, first_piece)}, tensor.name);
    for (size_t first = first_piece; first < elements; first += kPieceElements) {
      writer.writer().Append(values(tensor, first, PieceAt(tensor, first)));
    }
  }
  writer.Write(path);
}

}  // namespace cria::support
