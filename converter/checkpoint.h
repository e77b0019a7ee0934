#pragma once

#include <filesystem>
#include <string>

#include "converter/tensor_source.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// A checkpoint as its reader found it, whatever its format: a reader of another format fills the
// same fields, under the same names, and gets a branch in OpenCheckpoint.
struct Checkpoint {
  std::string name;              // For people.
  std::filesystem::path folder;  // Where its tokenizer lies.
  ModelConfig config = {};       // Valid.
  TensorSources tensors = {};    // Under Hugging Face's names, rotary rows in half-split order.
};

// Reads the description of a checkpoint; weights are left where they are.
Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path);

}  // namespace cria
