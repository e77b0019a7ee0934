#pragma once

#include <optional>
#include <string>

#include "cria/error.h"

namespace cria::cli {

// A checkpoint that a model is made of.
struct ModelSource {
  std::string checkpoint;  // As cria-convert takes it: "hf:ORG/NAME" or an absolute path.
  // The sizes and times of the files of a local checkpoint, so that one that changed is converted
  // again; empty for a checkpoint on the hub.
  std::string state;

  bool is_on_hub() const { return checkpoint.starts_with("hf:"); }
  // Identifies what a conversion makes of it: 32 hexadecimal digits.
  std::string Id() const;
};

// The checkpoint at a path or on the hub, if that is one; absent for a model file and for
// everything else.
std::optional<ModelSource> FindCheckpoint(const std::string& path_or_name);

}  // namespace cria::cli
