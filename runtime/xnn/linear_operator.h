#pragma once

// How a linear layer becomes an operator of XNNPACK; for this folder's sources alone, since it
// speaks XNNPACK's own types.

#include <xnnpack.h>

#include <cstddef>
#include <cstdint>

#include "model/tensor_table.h"

namespace cria::xnn {

struct OperatorStrides {
  size_t input = 0;      // In floats, for kF32.
  size_t quantized = 0;  // In bytes, for the other schemes.
  size_t output = 0;     // In floats.
};

// For weights that XNNPACK takes the address of and never reads.
alignas(64) inline constexpr float kUnreadWeights[16] = {};
// Whatever it does with them, XNNPACK looks whether int4's scales are sound.
inline constexpr uint16_t kSoundScale = 0x3f80;  // 1, as bf16.

// The weights are packed into `weights_cache`, or taken from it.
xnn_status CreateLinearOperator(const TensorLayout& layout, const void* data, const void* scales,
                                OperatorStrides strides, xnn_weights_cache_t weights_cache,
                                xnn_operator_t* op);

}  // namespace cria::xnn
