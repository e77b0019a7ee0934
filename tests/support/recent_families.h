#pragma once

#include <string>
#include <vector>

#include "support/family_checkpoint.h"

namespace cria::support {

// For family_checkpoint.h: the families of 2025 and 2026 that differ from others by a few rules,
// and text models within models that see pictures.
std::vector<FamilyCheckpoint> RecentFamilies();

// Whether a config.json is of one of them, and then the tensors, in no special order.
bool IsRecentFamily(const std::string& config_json);
std::vector<TensorShape> RecentFamilyTensors(const std::string& config_json);

}  // namespace cria::support
