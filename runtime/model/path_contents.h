#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// What is at a path that was given as a model file, as a checkpoint or as an output.
enum class ContentKind : uint8_t {
  kUnknown,  // Also a path that does not exist or cannot be read.
  kModel,
  kPackedWeights,
  kGguf,
  kLlama2c,
  kSafetensors,
  kTorch,              // Weights that PyTorch saved.
  kHuggingFaceFolder,  // Has config.json.
  kMetaFolder,         // Has params.json.
  kModelFolder,        // Has model files.
  kGgufFolder,
  kEmptyFolder,
  kOtherFolder,
  kHubName,  // Not a path, but a checkpoint on a hub: "hf:ORG/NAME".
};

struct PathContents {
  ContentKind kind = ContentKind::kUnknown;
  // The file, folder or name on a hub to convert, if this is one or part of one.
  std::string checkpoint;
  // kModelFolder and kGgufFolder only: the names of these files, sorted. Of a GGUF model in parts,
  // only the first part is here.
  std::vector<std::string> names;
};

// Recognizes files by their first bytes, and folders by the files in them.
PathContents InspectPath(const std::string& path);

// What the contents are, after "it": "is a GGUF file". Empty for kUnknown.
std::string ContentsText(const PathContents& contents);

// How to get a checkpoint that can be converted, as the end of a sentence; empty if there is one or
// if nothing can be said.
std::string_view HowToGetCheckpoint(const PathContents& contents);

// Names with commas and "and" between them.
std::string JoinNames(const std::vector<std::string>& names);

// Opens a file that should be a model. If it is something else that InspectPath recognizes, fails
// with a sentence that says what.
Result<platform::File> OpenModelPath(const std::string& path);

// Fails if `path` has contents that are not a model file or packed weights, so that a file of
// another program is not replaced by mistake. A path that does not exist is replaceable, and so is
// an empty file; what is not a regular file is left to OutputFile.
Status CheckReplaceable(const std::string& path);

}  // namespace cria
