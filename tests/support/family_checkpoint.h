#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/safetensors_writer.h"

namespace cria::support {

// Small checkpoints of the families whose mathematics is not Llama's, with random weights under the
// names of Hugging Face's own files: hidden size 64, heads of 16, vocabulary 300. They are given by
// their config.json, so that nothing but that file says what is computed. Their weights are drawn
// so that each step matters: activations are of order 1, norms are not close to 1, biases not to 0.
struct FamilyCheckpoint {
  std::string name;         // "Gemma2"
  std::string config_json;  // Without the ids of tokens.
  // The name of the architecture in GGUF files, or "" if these cannot say the same.
  std::string gguf_architecture;
};

// Several variants of each family.
std::vector<FamilyCheckpoint> FamilyCheckpoints();
// One of them; throws std::runtime_error if there is none with this name.
FamilyCheckpoint FamilyNamed(std::string_view name);

// The tensors of a config.json, in no special order.
std::vector<TensorShape> FamilyTensors(const FamilyCheckpoint& checkpoint);

// Writes config.json, generation_config.json, the weights in f32 and a byte-level tokenizer into
// `directory`, which is created if it does not exist.
void WriteFamilyDirectory(const FamilyCheckpoint& checkpoint,
                          const std::filesystem::path& directory);

// The values of a tensor, [elements].
std::vector<float> FamilyValues(const FamilyCheckpoint& checkpoint, const TensorShape& tensor);

// Writes the same model as llama.cpp's converter would.
void WriteFamilyGguf(const FamilyCheckpoint& checkpoint, const std::filesystem::path& path);

}  // namespace cria::support
