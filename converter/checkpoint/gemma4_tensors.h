#pragma once

#include <cstdint>

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Which layers have no v_proj, but the rows of k_proj twice.
enum class KeysAsValues : uint8_t { kNone, kWithoutWindow, kWhereMissing };

// Gives a checkpoint with the tensors of Gemma 4 those that its configuration calls for: layers
// without keys and values of their own lose what files have of these; scales of routers and experts
// become factors of their matrices; and the table of per-layer inputs has a row for each layer of a
// token. The configuration must be valid, and the tensors of experts NormalizeExpertTensors'.
Status FitGemma4Tensors(Checkpoint& checkpoint, KeysAsValues keys_as_values);

}  // namespace cria
