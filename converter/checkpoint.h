#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "converter/input/tensor_source.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// A checkpoint in the form that all readers give it: a reader of another format fills in the same
// fields, with the same tensor names, and gets a branch in OpenCheckpoint.
struct Checkpoint {
  std::string name;              // Shown to users.
  std::filesystem::path folder;  // The folder of its tokenizer, or a file that contains everything.
  ModelConfig config = {};       // Valid.
  TensorSources tensors = {};    // Under Hugging Face's names; rotary rows are read in half-split
                                 // order.
  std::string described_by = "config.json";  // The source of `config`, for error sentences.
  // Absent: the tokenizer is in Hugging Face's files in `folder`.
  std::optional<TokenizerMaterial> tokenizer = {};
};

// The part of a checkpoint that is needed without its weights.
struct CheckpointVocabulary {
  std::string name;  // Shown to users.
  TokenizerMaterial tokenizer = {};
};

// For readers of folders: the folder's own name, also if the path is ".", ends with a slash, or is
// a symbolic link of a snapshot.
std::string FolderName(const std::filesystem::path& folder);

}  // namespace cria
