#pragma once

#include <string>
#include <vector>

#include "support/family_checkpoint.h"

namespace cria::support {

// For family_checkpoint.h: variants of Gemma 4, with and without per-layer inputs, layers that read
// the keys and values of others, keys that are values, and experts beside a dense feed-forward.
std::vector<FamilyCheckpoint> Gemma4Checkpoints();

// Whether a config.json is of one of them, and then the tensors, in no special order.
bool IsGemma4(const std::string& config_json);
std::vector<TensorShape> Gemma4Tensors(const std::string& config_json);

}  // namespace cria::support
