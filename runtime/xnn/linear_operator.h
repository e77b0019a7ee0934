#pragma once

// Creates an XNNPACK operator for a linear layer. Only this folder's sources include this, because
// it uses XNNPACK's types.

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

// For weights whose address XNNPACK takes but which it never reads.
alignas(64) inline constexpr float kUnreadWeights[16] = {};
// XNNPACK checks that int4's scales are valid, even if it does not use them.
inline constexpr uint16_t kSoundScale = 0x3f80;  // 1, as bf16.

// Packs the weights into `weights_cache`, or uses those that are there.
xnn_status CreateLinearOperator(const TensorLayout& layout, const void* data, const void* scales,
                                OperatorStrides strides, xnn_weights_cache_t weights_cache,
                                xnn_operator_t* op);

}  // namespace cria::xnn
