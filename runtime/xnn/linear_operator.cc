#include "xnn/linear_operator.h"

#include <limits>

namespace cria::xnn {

xnn_status CreateLinearOperator(const TensorLayout& layout, const void* data, const void* scales,
                                OperatorStrides strides, xnn_weights_cache_t weights_cache,
                                xnn_operator_t* op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const size_t inputs = layout.padded_input_channels;
  const size_t outputs = layout.output_channels;
  switch (layout.scheme) {
    case Scheme::kF32:
      return xnn_create_fully_connected_nc_f32(inputs, outputs, strides.input, strides.output,
                                               static_cast<const float*>(data),
                                               /*bias=*/nullptr, -kInfinity, kInfinity, /*flags=*/0,
                                               /*code_cache=*/nullptr, weights_cache, op);
    case Scheme::kQc8w:
      return xnn_create_fully_connected_nc_qd8_f32_qc8w(
          inputs, outputs, strides.quantized, strides.output, static_cast<const float*>(scales),
          static_cast<const int8_t*>(data), /*bias=*/nullptr, -kInfinity, kInfinity, /*flags=*/0,
          /*code_cache=*/nullptr, weights_cache, op);
    case Scheme::kQb4w:
      return xnn_create_fully_connected_nc_qd8_f32_qb4w(
          inputs, outputs, strides.quantized, strides.output, layout.block_size, kQb4wZeroPoint,
          static_cast<const uint16_t*>(scales), data, /*bias=*/nullptr, -kInfinity, kInfinity,
          /*flags=*/0, /*code_cache=*/nullptr, weights_cache, op);
    default:
      break;
  }
  return xnn_status_invalid_parameter;
}

}  // namespace cria::xnn
