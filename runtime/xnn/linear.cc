#include "xnn/linear.h"

#include <xnnpack.h>

#include <algorithm>

#include "core/platform.h"
#include "xnn/linear_operator.h"
#include "xnn/packing.h"
#include "xnn/qb4w_tiles.h"

namespace cria::xnn {

static_assert(sizeof(RowQuantization) == sizeof(xnn_quantization_params));
static_assert(offsetof(RowQuantization, scale) == offsetof(xnn_quantization_params, scale));
static_assert(kReadableSlackBytes >= XNN_EXTRA_BYTES);
static_assert(kExtraRowQuantizations >= XNN_EXTRA_QUANTIZATION_PARAMS);

namespace {

// Handing a product to other threads costs about half a microsecond, and far more where they have
// been put to sleep: a smaller one is done sooner by one thread.
constexpr size_t kMinSharedMultiplications = size_t{256} * 1024;

// A kernel multiplies a tile of a few rows by all outputs before it takes the next tile. With many
// rows the weights would stream from memory again for every tile; this much of them stays in a
// cache until the last tile is done.
constexpr uint64_t kSliceBytes = uint64_t{5} << 18;
// Below this many rows there are too few tiles to gain anything.
constexpr size_t kMinSlicedRows = 16;

// XNNPACK looks through the scales of int4 weights even where it takes packed ones, which hold them
// already. These satisfy it.
Result<platform::PageBlock> MakeSoundScales(uint64_t bytes) {
  CRIA_ASSIGN_OR_RETURN(platform::PageBlock block, platform::PageBlock::Allocate(bytes));
  std::fill_n(reinterpret_cast<uint16_t*>(block.bytes().data()), bytes / sizeof(uint16_t),
              kSoundScale);
  return block;
}

}  // namespace

// An operator of XNNPACK that multiplies by other weights at every run: it asks its weights cache
// where they lie whenever it is shaped.
struct Linear::Operator {
  static Result<std::unique_ptr<Operator>> Create(const TensorLayout& layout,
                                                  const platform::PageBlock& scales,
                                                  const OperatorStrides& strides) {
    auto result = std::make_unique<Operator>();
    xnn_operator_t op = nullptr;
    CRIA_RETURN_IF_ERROR(
        CheckStatus(CreateLinearOperator(layout, kUnreadWeights, scales.bytes().data(), strides,
                                         &result->weights_cache, &op),
                    "creating a linear layer"));
    result->handle.reset(op);
    result->layout = layout;
    return result;
  }

  Status Run(const std::byte* packed, size_t rows, const LinearBuffers& buffers, float* output,
             pthreadpool* threads) {
    // XNNPACK only reads what is behind the pointer.
    weights_cache.context = const_cast<std::byte*>(packed);
    xnn_operator_t op = handle.get();
    const auto* quantizations =
        reinterpret_cast<const xnn_quantization_params*>(buffers.quantized.quantizations);
    xnn_status shaped = xnn_status_invalid_state;
    xnn_status set_up = xnn_status_invalid_state;
    switch (layout.scheme) {
      case Scheme::kF32:
        shaped = xnn_reshape_fully_connected_nc_f32(op, rows, threads);
        set_up = xnn_setup_fully_connected_nc_f32(op, buffers.input, output);
        break;
      case Scheme::kQc8w:
        shaped = xnn_reshape_fully_connected_nc_qd8_f32_qc8w(op, rows, threads);
        set_up = xnn_setup_fully_connected_nc_qd8_f32_qc8w(op, buffers.quantized.values, output,
                                                           quantizations);
        break;
      case Scheme::kQb4w:
        shaped = xnn_reshape_fully_connected_nc_qd8_f32_qb4w(op, rows, threads);
        set_up = xnn_setup_fully_connected_nc_qd8_f32_qb4w(op, buffers.quantized.values, output,
                                                           quantizations);
        break;
    }
    CRIA_RETURN_IF_ERROR(CheckStatus(shaped, "shaping a linear layer"));
    CRIA_RETURN_IF_ERROR(CheckStatus(set_up, "setting up a linear layer"));
    return CheckStatus(xnn_run_operator(op, threads), "multiplying a matrix");
  }

  // Holds one matrix, packed already: its context.
  xnn_weights_cache_provider weights_cache = {
      .context = nullptr,
      .look_up = [](void*, const xnn_weights_cache_look_up_key*) { return size_t{0}; },
      .reserve_space = [](void*, size_t) -> void* { return nullptr; },
      .look_up_or_insert = [](void*, const xnn_weights_cache_look_up_key*, void*,
                              size_t) { return SIZE_MAX; },
      .is_finalized = [](void*) { return true; },
      .offset_to_addr = [](void* packed, size_t) { return packed; },
      .delete_cache = [](void*) { return xnn_status_success; }};
  OperatorHandle handle;  // Points to the cache.
  TensorLayout layout;
};

Linear::Linear() = default;
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

uint64_t Linear::CreationBytes(const TensorLayout& layout) {
  return layout.scheme == Scheme::kQb4w
             ? layout.output_channels * layout.scales_per_row() * sizeof(uint16_t)
             : 0;
}

Result<Linear> Linear::Create(const TensorLayout& layout, const LinearBuffers& buffers) {
  CRIA_RETURN_IF_ERROR(Initialize());
  Linear linear;
  linear.layout_ = layout;
  linear.buffers_ = buffers;
  if (layout.scheme == Scheme::kQb4w && ops::HasQb4wProduct()) {
    CRIA_ASSIGN_OR_RETURN(const bool has_tiles, PacksQb4wAsTiles8c8(layout.block_size));
    if (has_tiles) {
      linear.tiles_ = {.input_channels = layout.padded_input_channels,
                       .block_size = layout.block_size};
      return linear;
    }
  }
  CRIA_ASSIGN_OR_RETURN(const platform::PageBlock scales, MakeSoundScales(CreationBytes(layout)));
  const size_t outputs = layout.output_channels;
  const auto create = [&](size_t num_outputs) {
    TensorLayout slice = layout;
    slice.output_channels = num_outputs;
    return Operator::Create(
        slice, scales,
        {.input = buffers.input_stride, .quantized = buffers.quantized_stride, .output = outputs});
  };
  CRIA_ASSIGN_OR_RETURN(linear.whole_, create(outputs));
  const size_t slice_outputs = NextSliceRows(layout, outputs, kSliceBytes);
  if (slice_outputs == outputs) return linear;
  CRIA_ASSIGN_OR_RETURN(linear.slice_, create(slice_outputs));
  CRIA_ASSIGN_OR_RETURN(linear.slice_bytes_, PackedBytes(linear.slice_->layout));
  size_t left = outputs;
  while (NextSliceRows(layout, left, kSliceBytes) < left) left -= slice_outputs;
  if (left != slice_outputs) {
    CRIA_ASSIGN_OR_RETURN(linear.last_slice_, create(left));
  }
  return linear;
}

Status Linear::Run(std::span<const std::byte> packed, size_t rows, const ThreadPool& pool) {
  if (rows == 0) return {};
  if (!tiles_.has_value()) return RunOperators(packed, rows, pool);
  const QuantizedRows& quantized = buffers_.quantized;
  ops::MultiplyQb4w(*tiles_, packed.data(), layout_.output_channels,
                    {quantized.values, buffers_.quantized_stride, quantized.quantizations, rows},
                    buffers_.output, pool);
  return {};
}

Status Linear::RunOperators(std::span<const std::byte> packed, size_t rows,
                            const ThreadPool& pool) {
  if (layout_.scheme != Scheme::kF32) {
    RowQuantization* const end = buffers_.quantized.quantizations + rows;
    std::fill_n(end, kExtraRowQuantizations, end[-1]);
  }
  const size_t multiplications = rows * layout_.output_channels * layout_.padded_input_channels;
  pthreadpool* const threads =
      multiplications < kMinSharedMultiplications ? nullptr : pool.handle();
  if (rows >= kMinSlicedRows && slice_ != nullptr) return RunSlices(packed, rows, threads);
  return whole_->Run(packed.data(), rows, buffers_, buffers_.output, threads);
}

Status Linear::RunSlices(std::span<const std::byte> packed, size_t rows, pthreadpool* threads) {
  const size_t slice_outputs = slice_->layout.output_channels;
  Operator& last = last_slice_ != nullptr ? *last_slice_ : *slice_;
  const size_t last_begin = layout_.output_channels - last.layout.output_channels;
  const std::byte* weights = packed.data();
  for (size_t output = 0; output < last_begin; output += slice_outputs, weights += slice_bytes_) {
    CRIA_RETURN_IF_ERROR(slice_->Run(weights, rows, buffers_, buffers_.output + output, threads));
  }
  return last.Run(weights, rows, buffers_, buffers_.output + last_begin, threads);
}

}  // namespace cria::xnn
