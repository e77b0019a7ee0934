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
// so that each step matters: activations are of order 1, norms are not close to 1, biases not to 0,
// and tokens choose among all experts.
struct FamilyCheckpoint {
  std::string name;         // "Gemma2"
  std::string config_json;  // Without the ids of tokens.
  // The name of the architecture in GGUF files, or "" if these cannot say the same.
  std::string gguf_architecture = {};
  StorageType storage = StorageType::kF32;
  // Row e of each router is divided by (e + 1)^router_skew: with 0, tokens choose all experts about
  // equally often; the larger it is, the more often they choose the first ones.
  double router_skew = 0.0;
  // Multiplies the embedding. With a larger one, tokens differ more from each other in all layers.
  float embedding_scale = 1.0f;
};

// Several variants of each family.
std::vector<FamilyCheckpoint> FamilyCheckpoints();
// One of any of them; throws std::runtime_error if there is none with this name.
FamilyCheckpoint FamilyNamed(std::string_view name);

// A mixture whose experts take several pages of memory each, and whose rows are shared between
// threads: hidden size 256, 3 layers, of which the second is dense, 8 experts of 256 channels of
// which a token chooses 2, a shared expert, vocabulary 1024, 512 positions.
FamilyCheckpoint WideMixture();

// A checkpoint of any size with this config.json. Throws std::runtime_error for other architectures
// than those of these.
FamilyCheckpoint FamilyOf(const std::string& config_json);

// The tensors of a config.json, in no special order.
std::vector<TensorShape> FamilyTensors(const FamilyCheckpoint& checkpoint);

// Writes config.json, generation_config.json, the weights and a byte-level tokenizer into
// `directory`, which is created if it does not exist.
void WriteFamilyDirectory(const FamilyCheckpoint& checkpoint,
                          const std::filesystem::path& directory);

// `count` values of a tensor from `first` on, or all of them.
std::vector<float> FamilyValues(const FamilyCheckpoint& checkpoint, const TensorShape& tensor,
                                size_t first, size_t count);
std::vector<float> FamilyValues(const FamilyCheckpoint& checkpoint, const TensorShape& tensor);

// Writes the same model as llama.cpp's converter would, with matrices in f32, or rounded to Q4_0,
// which is for measuring: all of it is in memory then. Throws std::runtime_error if GGUF files
// cannot say the same.
void WriteFamilyGguf(const FamilyCheckpoint& checkpoint, const std::filesystem::path& path,
                     bool rounds_matrices = false);

}  // namespace cria::support
