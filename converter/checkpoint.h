#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "converter/input/tensor_source.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// A checkpoint as its reader found it, whatever its format: a reader of another format fills the
// same fields, under the same names, and gets a branch in OpenCheckpoint.
struct Checkpoint {
  std::string name;              // For people.
  std::filesystem::path folder;  // Where its tokenizer lies; a file that has everything itself.
  ModelConfig config = {};       // Valid.
  TensorSources tensors = {};    // Under Hugging Face's names; rotary rows are read in half-split
                                 // order.
  std::string described_by = "config.json";  // What `config` is read from, for error sentences.
  // Absent: it is in Hugging Face's files in `folder`.
  std::optional<TokenizerMaterial> tokenizer = {};
};

// What is wanted of a checkpoint whose weights are not, or which has none.
struct CheckpointVocabulary {
  std::string name;  // For people.
  TokenizerMaterial tokenizer = {};
};

// For readers of folders: the folder's own name, also for ".", "models/" and symbolic links of
// snapshots.
std::string FolderName(const std::filesystem::path& folder);

}  // namespace cria
