#include "xnn/linear.h"

#include <xnnpack.h>

#include <limits>

namespace cria::xnn {
namespace {

// Handing a product to other threads costs about half a microsecond, and far more where they have
// been put to sleep: a smaller one is done sooner by one thread.
constexpr size_t kLeastSharedMultiplications = size_t{256} * 1024;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

xnn_status CreateOperator(const LinearWeights& weights, const LinearBuffers& buffers,
                          xnn_operator_t* op) {
  const TensorLayout& layout = weights.layout;
  const size_t inputs = layout.padded_input_channels;
  const size_t outputs = layout.output_channels;
  switch (layout.scheme) {
    case Scheme::kF32:
      return xnn_create_fully_connected_nc_f32(
          inputs, outputs, buffers.input_stride, outputs,
          reinterpret_cast<const float*>(weights.data.data()), /*bias=*/nullptr, -kInfinity,
          kInfinity, /*flags=*/0, /*code_cache=*/nullptr, /*weights_cache=*/nullptr, op);
    case Scheme::kQc8w:
      return xnn_create_fully_connected_nc_qd8_f32_qc8w(
          inputs, outputs, buffers.quantized_stride, outputs,
          reinterpret_cast<const float*>(weights.scales.data()),
          reinterpret_cast<const int8_t*>(weights.data.data()), /*bias=*/nullptr, -kInfinity,
          kInfinity, /*flags=*/0, /*code_cache=*/nullptr, /*weights_cache=*/nullptr, op);
    case Scheme::kQb4w:
      return xnn_create_fully_connected_nc_qd8_f32_qb4w(
          inputs, outputs, buffers.quantized_stride, outputs, layout.block_size, kQb4wZeroPoint,
          reinterpret_cast<const uint16_t*>(weights.scales.data()), weights.data.data(),
          /*bias=*/nullptr, -kInfinity, kInfinity, /*flags=*/0, /*code_cache=*/nullptr,
          /*weights_cache=*/nullptr, op);
  }
  return xnn_status_invalid_parameter;
}

}  // namespace

Result<Linear> Linear::Create(const LinearWeights& weights, const LinearBuffers& buffers) {
  CRIA_RETURN_IF_ERROR(Initialize());
  Linear linear;
  linear.layout_ = weights.layout;
  linear.buffers_ = buffers;
  xnn_operator_t op = nullptr;
  CRIA_RETURN_IF_ERROR(
      CheckStatus(CreateOperator(weights, buffers, &op), "creating a linear layer"));
  linear.operator_.reset(op);
  return linear;
}

Status Linear::Prepare(size_t rows, pthreadpool* pool) {
  xnn_operator_t op = operator_.get();
  const auto* quantizations =
      reinterpret_cast<const xnn_quantization_params*>(buffers_.quantized.quantizations);
  xnn_status reshaped = xnn_status_invalid_state;
  xnn_status set_up = xnn_status_invalid_state;
  switch (layout_.scheme) {
    case Scheme::kF32:
      reshaped = xnn_reshape_fully_connected_nc_f32(op, rows, pool);
      set_up = xnn_setup_fully_connected_nc_f32(op, buffers_.input, buffers_.output);
      break;
    case Scheme::kQc8w:
      reshaped = xnn_reshape_fully_connected_nc_qd8_f32_qc8w(op, rows, pool);
      set_up = xnn_setup_fully_connected_nc_qd8_f32_qc8w(op, buffers_.quantized.values,
                                                         buffers_.output, quantizations);
      break;
    case Scheme::kQb4w:
      reshaped = xnn_reshape_fully_connected_nc_qd8_f32_qb4w(op, rows, pool);
      set_up = xnn_setup_fully_connected_nc_qd8_f32_qb4w(op, buffers_.quantized.values,
                                                         buffers_.output, quantizations);
      break;
  }
  CRIA_RETURN_IF_ERROR(CheckStatus(reshaped, "shaping a linear layer"));
  return CheckStatus(set_up, "setting up a linear layer");
}

Status Linear::Run(size_t rows, const ThreadPool& pool) {
  const size_t multiplications = rows * layout_.output_channels * layout_.padded_input_channels;
  pthreadpool* const threads =
      multiplications < kLeastSharedMultiplications ? nullptr : pool.handle();
  if (rows != prepared_rows_ || threads != prepared_pool_) {
    prepared_rows_ = 0;
    CRIA_RETURN_IF_ERROR(Prepare(rows, threads));
    prepared_rows_ = rows;
    prepared_pool_ = threads;
  }
  return CheckStatus(xnn_run_operator(operator_.get(), threads), "multiplying a matrix");
}

}  // namespace cria::xnn
