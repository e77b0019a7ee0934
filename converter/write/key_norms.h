#pragma once

#include <span>

#include "converter/write/tensor_map.h"
#include "cria/error.h"

namespace cria {

// For ModelConfig::qk_norm_after_rope: moves the weights of the norms of keys into those of
// queries, whose products with the keys stay the same.
Status MoveKeyNorms(std::span<MappedTensor> tensors);

}  // namespace cria
