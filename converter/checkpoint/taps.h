#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Makes the taps of convolutions [taps, channels], as the model has them; checkpoints have
// [channels, 1, taps] (Hugging Face) or [channels, taps] (GGUF).
Status TransposeTaps(Checkpoint& checkpoint);

}  // namespace cria
