// Writes small sound inputs for the fuzzers of files, a folder for each, below the folder that is
// named: cria-fuzz-seeds FOLDER.

#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "fuzz/session_model.h"
#include "llm/session_file.h"
#include "llm/turn.h"
#include "model/file_layout.h"
#include "support/checkpoint_writer.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/llama2c_writer.h"
#include "support/tiny_checkpoint.h"
#include "support/torch_writer.h"
#include "support/unwrap.h"

namespace {

using cria::support::StorageType;
using Path = std::filesystem::path;

// One layer of eight channels, or one of each kind, so that a fuzzer's mutations hit what is read.
cria::reference::ReferenceModel Smallest(cria::support::CheckpointSpec spec) {
  spec.config.hidden_size = 8;
  spec.config.intermediate_size = 32;
  spec.config.num_hidden_layers = spec.config.layers.empty() ? 1 : 2;
  spec.config.num_attention_heads = 2;
  spec.config.num_key_value_heads = 1;
  spec.config.head_dim = 4;
  spec.config.max_position_embeddings = 4;
  if (!spec.config.layers.empty()) {
    spec.config.layers = {{.rope_theta = 500.0, .sliding_window = 2}, {}};
  }
  return cria::support::MakeModel(spec);
}

// The metadata of the model file that a checkpoint becomes.
std::string MetadataOf(const Path& checkpoint, const Path& folder) {
  const Path path = folder / "model.cria";
  Unwrap(cria::Convert(checkpoint, path, {.weights = cria::Scheme::kF32}));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path);
  cria::FilePreamble preamble;
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  return bytes.substr(sizeof preamble, preamble.metadata_bytes);
}

// Inputs of session_fuzzer.cc: session files without the preamble, behind the size of the metadata.
void WriteSessionSeeds(const Path& folder) {
  const auto engine = cria::LoadSessionModel();
  const Path path = folder / "session";
  const auto write = [&](const char* name, cria::SessionContent content,
                         const cria::ConversationState& conversation, size_t num_tokens) {
    cria::Session& session = engine->session();
    Unwrap(cria::Turn(session).Prefill(std::vector<int32_t>(num_tokens, 9)));
    Unwrap(cria::SaveSession(path, content, conversation, session, num_tokens, *engine));
    const std::string bytes = cria::support::ReadFile(path);
    cria::FilePreamble preamble;
    std::memcpy(&preamble, bytes.data(), sizeof preamble);
    const auto metadata_bytes = static_cast<uint16_t>(preamble.metadata_bytes);
    std::string seed(reinterpret_cast<const char*>(&metadata_bytes), sizeof metadata_bytes);
    cria::support::WriteFile(folder / name, seed + bytes.substr(sizeof preamble));
  };
  cria::ConversationState conversation;
  conversation.messages = {{"system", "s"}, {"user", "ab"}, {"assistant", "c"}};
  conversation.num_system_messages = 1;
  conversation.variables = R"({"a": 1})";
  write("text", cria::SessionContent::kText, {}, 3);
  write("one_page", cria::SessionContent::kConversation, conversation, 5);
  write("two_pages", cria::SessionContent::kConversation, conversation, 67);
  conversation.messages[2].fields = R"({"b":1})";
  write("fields", cria::SessionContent::kConversation, conversation, 5);
  std::filesystem::remove(path);
}

void WriteSeeds(const Path& folder) {
  for (const char* name : {"gguf", "safetensors", "llama2c", "model_file", "session", "torch"}) {
    std::filesystem::create_directories(folder / name);
  }
  WriteSessionSeeds(folder / "session");
  const auto model = Smallest(cria::support::SpecGqa());
  const auto relative = Smallest(cria::support::SpecQwen3Biases());
  const auto two_kinds = Smallest(cria::support::SpecTwoRopes());
  cria::support::WriteGguf(model, StorageType::kF32, folder / "gguf" / "f32.gguf");
  cria::support::WriteGguf(model, StorageType::kBf16, folder / "gguf" / "bf16.gguf");
  cria::support::WriteGguf(relative, StorageType::kF32, folder / "gguf" / "qwen3.gguf");
  cria::support::WriteGguf(two_kinds, StorageType::kF32, folder / "gguf" / "two_kinds.gguf");
  cria::support::WriteLlama2c(model, 0, folder / "llama2c" / "version0.bin");
  cria::support::WriteLlama2c(model, 1, folder / "llama2c" / "version1.bin");
  cria::support::WriteLlama2cTokenizer(folder / "llama2c" / "tokenizer.bin");
  const std::vector<cria::support::TorchTensor> tensors = {{"a", {2, 2}, {1, 2, 3, 4}},
                                                           {"b", {3}, {1, 2, 3}}};
  for (const bool is_large : {false, true}) {
    cria::support::WriteTorchArchive(tensors, StorageType::kF16,
                                     folder / "torch" / (is_large ? "zip64.pth" : "zip.pth"),
                                     is_large);
  }
  cria::support::WriteFile(folder / "torch" / "data.pkl",
                           cria::support::TorchPickle(tensors, StorageType::kBf16));
  cria::support::WriteHuggingFaceDirectory(model, folder / "safetensors", {});
  cria::support::WriteFile(folder / "model_file" / "metadata",
                           MetadataOf(folder / "safetensors", folder));
  cria::support::WriteFile(folder / "model_file" / "two_kinds",
                           MetadataOf(folder / "gguf" / "two_kinds.gguf", folder));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: cria-fuzz-seeds FOLDER\n", stderr);
    return 2;
  }
  try {
    WriteSeeds(argv[1]);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "cria-fuzz-seeds: %s\n", exception.what());
    return 1;
  }
}
