#pragma once

#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria::hub {

// A checkpoint on the hub, as users write it: hf:ORG/NAME[:FILE.gguf][@REVISION]; a slash may stand
// in place of the colon.
struct CheckpointName {
  std::string organization;
  std::string name;
  std::string file;               // A GGUF file, with its folders; empty for Hugging Face's layout.
  std::string revision = "main";  // A branch, a tag, or a commit.

  std::string repository() const { return organization + "/" + name; }
};

// Whether the text begins with "hf:".
bool IsCheckpointName(std::string_view text);

// A wrong name is kUsage.
Result<CheckpointName> ParseCheckpointName(std::string_view text);

// Whether a path from the hub can be used as a path inside a folder on every system: relative, with
// slashes, and without "..", ".", empty parts, backslashes, colons and control characters.
bool IsSafePath(std::string_view path);

}  // namespace cria::hub
