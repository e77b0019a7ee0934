#pragma once

#include <vector>

#include "support/family_checkpoint.h"

namespace cria::support {

// For family_checkpoint.h: variants of gpt-oss, one with experts in MXFP4. Their tensors are among
// RecentFamilyTensors.
std::vector<FamilyCheckpoint> GptOssCheckpoints();

}  // namespace cria::support
