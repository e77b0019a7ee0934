#include "xnn/linear.h"

#include <xnnpack.h>

#include <algorithm>
#include <utility>

#include "xnn/linear_operator.h"

namespace cria::xnn {
namespace {

// Handing a product to other threads costs about half a microsecond, and far more where they have
// been put to sleep: a smaller one is done sooner by one thread.
constexpr size_t kLeastSharedMultiplications = size_t{256} * 1024;

}  // namespace

Result<StandInScales> StandInScales::Create(size_t bytes) {
  CRIA_ASSIGN_OR_RETURN(platform::PageBlock block, platform::PageBlock::Allocate(bytes));
  std::fill_n(reinterpret_cast<uint16_t*>(block.bytes().data()), bytes / sizeof(uint16_t),
              kSoundScale);
  return StandInScales(std::move(block));
}

size_t StandInScales::BytesFor(const TensorLayout& layout) {
  if (layout.scheme != Scheme::kQb4w) return 0;
  return layout.output_channels * layout.scales_per_row() * sizeof(uint16_t);
}

std::span<const uint16_t> StandInScales::values() const {
  const std::span<std::byte> bytes = block_.bytes();
  return {reinterpret_cast<const uint16_t*>(bytes.data()), bytes.size() / sizeof(uint16_t)};
}

// A weights cache that holds one matrix, packed already.
struct Linear::WeightsCache {
  explicit WeightsCache(const std::byte* packed) {
    provider = {// XNNPACK only reads what is behind the pointer.
                .context = const_cast<std::byte*>(packed),
                .look_up = [](void*, const xnn_weights_cache_look_up_key*) { return size_t{0}; },
                .reserve_space = [](void*, size_t) -> void* { return nullptr; },
                .look_up_or_insert = [](void*, const xnn_weights_cache_look_up_key*, void*,
                                        size_t) { return SIZE_MAX; },
                .is_finalized = [](void*) { return true; },
                .offset_to_addr = [](void* weights, size_t) { return weights; },
                .delete_cache = [](void*) { return xnn_status_success; }};
  }
  xnn_weights_cache_provider provider;
};

Linear::Linear() = default;
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

Result<Linear> Linear::Create(const TensorLayout& layout, std::span<const std::byte> packed,
                              const StandInScales& scales, const LinearBuffers& buffers) {
  if (scales.values().size_bytes() < StandInScales::BytesFor(layout)) {
    return Fail(ErrorCode::kInternal, "a linear layer has more scales than there are stand-ins");
  }
  CRIA_RETURN_IF_ERROR(Initialize());
  Linear linear;
  linear.layout_ = layout;
  linear.buffers_ = buffers;
  linear.weights_ = std::make_unique<WeightsCache>(packed.data());
  xnn_operator_t op = nullptr;
  CRIA_RETURN_IF_ERROR(CheckStatus(
      CreateLinearOperator(layout, kUnreadWeights, scales.values().data(),
                           {.input = buffers.input_stride, .quantized = buffers.quantized_stride},
                           &linear.weights_->provider, &op),
      "creating a linear layer"));
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
