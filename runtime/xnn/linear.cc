#include "xnn/linear.h"

#include <xnnpack.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "core/numeric.h"
#include "core/platform.h"
#include "ops/products/tiled_product.h"
#include "ops/quantize_row.h"
#include "ops/quantized_blocks.h"
#include "xnn/linear_operator.h"
#include "xnn/packing.h"
#include "xnn/tile_probe.h"

namespace cria::xnn {

static_assert(sizeof(RowQuantization) == sizeof(xnn_quantization_params));
static_assert(offsetof(RowQuantization, scale) == offsetof(xnn_quantization_params, scale));
static_assert(kReadableSlackBytes >= XNN_EXTRA_BYTES);
static_assert(kExtraRowQuantizations >= XNN_EXTRA_QUANTIZATION_PARAMS);

namespace {

// Sharing a product with other threads costs about half a microsecond, and far more if they sleep:
// one thread computes a smaller product in less time.
constexpr size_t kMinSharedMultiplications = size_t{256} * 1024;

// The unit of work that threads share is a slice of outputs, whose product XNNPACK computes on one
// thread. A slice ends on a multiple of this many outputs and is no shorter, so that it consists of
// whole tiles of the packed weights, which have 8 to 64 outputs.
constexpr size_t kSliceGranularity = 64;
// A kernel multiplies a tile of a few rows by all outputs of its slice before it takes the next
// rows: so much of the weights stays in a core's cache until the last rows are done.
constexpr uint64_t kMaxSliceBytes = uint64_t{320} << 10;
// One thread alone multiplies fewer rows than these by all outputs at once.
constexpr size_t kMinSlicedRows = 16;
// Running an operator costs about 30 ns, and reading this many bytes takes far longer.
constexpr uint64_t kMinSliceBytes = uint64_t{24} << 10;
// Each thread has this many slices, unless they would be smaller than the minimum. Threads that
// finish early take slices from the others.
constexpr uint64_t kSlicesPerThread = 4;

// Threads share many rows in parts of this many. Kernels compute whole tiles of rows: this is a
// multiple of 4, 7 and 14 rows, and with tiles of 5, 6, 8 or 10 rows, 7 or 14% are computed in
// vain. Rows that are left over belong to the last part, because XNNPACK's product of one row may
// differ from that of many. So a part has fewer than 2 * kPartRows rows.
constexpr size_t kPartRows = 28;

// Copies the last of `rows` quantizations to the kExtraRowQuantizations elements behind it.
void RepeatLast(RowQuantization* quantizations, size_t rows) {
  std::fill_n(quantizations + rows, kExtraRowQuantizations, quantizations[rows - 1]);
}

// Outputs of all slices but the last one.
size_t SliceOutputs(const TensorLayout& layout, size_t num_threads) {
  const size_t outputs = layout.output_channels;
  const uint64_t unit_bytes = kSliceGranularity * (layout.row_bytes() + layout.row_scale_bytes());
  const size_t units = outputs / kSliceGranularity;
  if (units <= 1) return outputs;
  const uint64_t fair_bytes =
      num_threads == 1 ? kMaxSliceBytes : units * unit_bytes / (num_threads * kSlicesPerThread);
  const uint64_t max_bytes = std::clamp(fair_bytes, kMinSliceBytes, kMaxSliceBytes);
  const auto max_size = static_cast<size_t>(std::clamp<uint64_t>(max_bytes / unit_bytes, 1, units));
  // The units that the busiest thread has.
  const auto share = [&](size_t size) {
    return DivideRoundingUp(DivideRoundingUp(units, size), num_threads) * size;
  };
  size_t best = max_size;
  for (size_t size = max_size; size * 2 >= max_size && size > 0; --size) {
    if (share(size) < share(best)) best = size;
  }
  return best >= units ? outputs : best * kSliceGranularity;
}

ops::PackedTiles TilesOf(const ops::TileKernel& kernel, const TensorLayout& layout) {
  const BlockFormat* const format = layout.block_format();
  return format != nullptr ? ops::TilesOf(*format, layout.padded_input_channels, layout.factor)
                           : ops::TilesOf(kernel, layout.padded_input_channels, layout.block_size);
}

// Our kernel for matrices with this layout, or null if XNNPACK multiplies by them: because there is
// no kernel for this processor, or none that reads what XNNPACK packs.
Result<const ops::TileKernel*> FindKernel(const TensorLayout& layout) {
  if (layout.block_format() != nullptr) return ops::FindBlockKernel(*layout.block_format());
  const ops::TileKernel* kernel = nullptr;
  if (layout.scheme == Scheme::kQb4w) kernel = ops::FindQb4wKernel();
  if (layout.scheme == Scheme::kQc8w) kernel = ops::FindQc8wKernel();
  if (kernel == nullptr) return nullptr;
  CRIA_ASSIGN_OR_RETURN(const bool is_readable, PacksAs(TilesOf(*kernel, layout)));
  return is_readable ? kernel : nullptr;
}

// XNNPACK checks the scales of int4 weights even if it uses packed weights, which contain the
// scales already. These scales pass the check.
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

  // Runs on this thread alone.
  Status Run(const std::byte* packed, size_t rows, const LinearBuffers& buffers, float* output) {
    constexpr pthreadpool* threads = nullptr;
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
      default:
        break;
    }
    CRIA_RETURN_IF_ERROR(CheckStatus(shaped, "shaping a linear layer"));
    CRIA_RETURN_IF_ERROR(CheckStatus(set_up, "setting up a linear layer"));
    return CheckStatus(xnn_run_operator(op, threads), "multiplying a matrix");
  }

  // A cache of one packed matrix, to which its context points.
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

Result<Linear> Linear::Create(const TensorLayout& layout, const LinearBuffers& buffers,
                              size_t num_threads) {
  CRIA_RETURN_IF_ERROR(Initialize());
  Linear linear;
  linear.layout_ = layout;
  linear.buffers_ = buffers;
  CRIA_ASSIGN_OR_RETURN(linear.kernel_, FindKernel(layout));
  if (linear.kernel_ != nullptr) return linear;
  CRIA_ASSIGN_OR_RETURN(const platform::PageBlock scales, MakeSoundScales(CreationBytes(layout)));
  const size_t outputs = layout.output_channels;
  const auto create = [&](size_t num_outputs) {
    TensorLayout slice = layout;
    slice.output_channels = num_outputs;
    return Operator::Create(slice, scales,
                            {.input = buffers.input_stride,
                             .quantized = buffers.quantized_stride,
                             .output = buffers.output_stride});
  };
  CRIA_ASSIGN_OR_RETURN(linear.whole_, create(outputs));
  const size_t slice_outputs = SliceOutputs(layout, num_threads);
  if (slice_outputs == outputs) return linear;
  // The outputs that are left over after equal slices are one more slice, or part of the last slice
  // if they are too few.
  CRIA_ASSIGN_OR_RETURN(linear.packed_bytes_, PackedBytes(layout));
  linear.num_slices_ = (outputs + slice_outputs - kSliceGranularity) / slice_outputs;
  const size_t last_outputs = outputs - (linear.num_slices_ - 1) * slice_outputs;
  for (size_t thread = 0; thread < num_threads; ++thread) {
    CRIA_ASSIGN_OR_RETURN(linear.slices_.emplace_back(), create(slice_outputs));
  }
  if (last_outputs != slice_outputs) {
    CRIA_ASSIGN_OR_RETURN(linear.last_slice_, create(last_outputs));
  }
  CRIA_ASSIGN_OR_RETURN(linear.slice_bytes_, PackedBytes(linear.slices_.front()->layout));
  return linear;
}

InputForm Linear::input_form() const {
  if (layout_.scheme == Scheme::kF32) return InputForm::kF32;
  return kernel_ == nullptr ? InputForm::kRows : InputForm::kBlocks;
}

void Linear::Quantize(const float* input, const QuantizedRows& rows, size_t row) const {
  QuantizePart(input, 0, layout_.input_channels, rows, row);
}

void Linear::QuantizePart(const float* input, size_t begin, size_t end, const QuantizedRows& rows,
                          size_t row) const {
  const size_t size = layout_.input_channels;
  const size_t padded_size = layout_.padded_input_channels;
  int8_t* const values = rows.values + row * buffers_.quantized_stride;
  switch (input_form()) {
    case InputForm::kF32:
      return;
    case InputForm::kRows:
      rows.quantizations[row] = ops::QuantizeRow(input, size, values);
      return;
    case InputForm::kBlocks:
      ops::QuantizeBlocks(input, size, padded_size,
                          {begin / ops::kActivationBlock,
                           ops::QuantizedBlocks::Blocks(end == size ? padded_size : end)},
                          values);
      return;
  }
}

Status Linear::Run(std::span<const std::byte> packed, size_t rows, const ThreadPool& pool) {
  const ops::RowGroup all = {.packed = packed.data(), .first_row = 0, .num_rows = rows};
  return rows == 0 ? Status() : RunGroups(std::span(&all, 1), pool);
}

Status Linear::RunGroups(std::span<const ops::RowGroup> groups, const ThreadPool& pool) {
  if (groups.empty()) return {};
  if (kernel_ == nullptr) {
    // From the last to the first, because the quantizations behind a group's are overwritten.
    for (size_t i = groups.size(); i-- > 0;) {
      const ops::RowGroup& group = groups[i];
      CRIA_RETURN_IF_ERROR(
          RunOperators(group.packed, group.num_rows, BuffersFrom(group.first_row, buffers_), pool));
    }
    return {};
  }
  RunTiles(groups, {0, layout_.output_channels}, pool);
  return {};
}

Status Linear::RunStored(std::span<const std::byte> packed, size_t rows, const OutputRange& stored,
                         std::span<const uint32_t> kept, const ThreadPool& pool) {
  if (kernel_ == nullptr || kept.size() == rows) return Run(packed, rows, pool);
  const ops::PackedTiles tiles = TilesOf(*kernel_, layout_);
  const OutputRange by_all = {stored.begin / tiles.outputs * tiles.outputs,
                              std::min(DivideRoundingUp(stored.end, tiles.outputs) * tiles.outputs,
                                       layout_.output_channels)};
  const auto run = [&](size_t first_row, size_t num_rows, const OutputRange& outputs) {
    if (num_rows == 0 || outputs.begin == outputs.end) return;
    const ops::RowGroup group = {
        .packed = packed.data() + outputs.begin / tiles.outputs * tiles.tile_bytes(),
        .first_row = first_row,
        .num_rows = num_rows};
    RunTiles(std::span(&group, 1), outputs, pool);
  };
  run(0, rows, by_all);
  for (size_t i = 0; i < kept.size();) {
    const size_t first_row = kept[i];
    size_t num_rows = 1;
    for (++i; i < kept.size() && kept[i] == first_row + num_rows; ++i) ++num_rows;
    run(first_row, num_rows, {0, by_all.begin});
    run(first_row, num_rows, {by_all.end, layout_.output_channels});
  }
  return {};
}

void Linear::RunTiles(std::span<const ops::RowGroup> groups, const OutputRange& outputs,
                      const ThreadPool& pool) const {
  const size_t rows = groups.back().first_row + groups.back().num_rows;
  ops::MultiplyTiledGroups(*kernel_, TilesOf(*kernel_, layout_), groups,
                           outputs.end - outputs.begin,
                           {buffers_.quantized.values, buffers_.quantized_stride, rows},
                           {buffers_.output + outputs.begin, buffers_.output_stride}, pool);
}

Status Linear::RunOperators(const std::byte* packed, size_t rows, const LinearBuffers& buffers,
                            const ThreadPool& pool) {
  if (layout_.scheme != Scheme::kF32) {
    RepeatLast(buffers.quantized.quantizations, rows);
  }
  const size_t multiplications = rows * layout_.output_channels * layout_.padded_input_channels;
  if (pool.num_threads() > slices_.size() && num_slices_ > 1) {
    return Fail(ErrorCode::kInternal, "a linear layer was made for fewer threads");
  }
  const bool is_shared = pool.num_threads() > 1 && multiplications >= kMinSharedMultiplications;
  if (num_slices_ == 1 || (!is_shared && rows < kMinSlicedRows)) {
    return whole_->Run(packed, rows, buffers, buffers.output);
  }
  if (!is_shared) {
    for (size_t slice = 0; slice < num_slices_; ++slice) {
      CRIA_RETURN_IF_ERROR(RunSlice(packed, rows, buffers, slice, 0));
    }
    return {};
  }
  std::atomic<bool> has_failed = false;
  Status failure;
  const size_t num_parts = std::max<size_t>(1, rows / kPartRows);
  const size_t num_equal_slices = last_slice_ == nullptr ? num_slices_ : num_slices_ - 1;
  const size_t num_part_tasks = num_parts * num_equal_slices;
  // If all weights stay in a core's cache, a thread multiplies its rows by one slice after another;
  // otherwise, it multiplies a slice by one part of the rows after another.
  const bool slices_first = packed_bytes_ <= kMaxSliceBytes;
  const auto run_task = [&](size_t task, size_t thread) {
    // A last slice of another size has one operator for all threads: one task multiplies all rows.
    if (task == num_part_tasks) {
      return RunSlice(packed, rows, buffers, num_equal_slices, thread);
    }
    // Few rows, such as one token's, are one part, whose quantizations need not be copied.
    if (num_parts == 1) return RunSlice(packed, rows, buffers, task, thread);
    const size_t part = slices_first ? task / num_equal_slices : task % num_parts;
    const size_t slice = slices_first ? task % num_equal_slices : task / num_parts;
    const size_t first = part * kPartRows;
    const size_t end = part == num_parts - 1 ? rows : first + kPartRows;
    return RunPart(packed, first, end - first, buffers, slice, thread);
  };
  const size_t num_tasks = num_part_tasks + num_slices_ - num_equal_slices;
  pool.ParallelFor(num_tasks, [&](size_t task, size_t thread) {
    Status status = run_task(task, thread);
    if (!status && !has_failed.exchange(true)) failure = std::move(status);
  });
  return failure;
}

LinearBuffers Linear::BuffersFrom(size_t first, const LinearBuffers& buffers) const {
  LinearBuffers from = buffers;
  from.output += first * from.output_stride;
  if (layout_.scheme == Scheme::kF32) {
    from.input += first * from.input_stride;
  } else {
    from.quantized.values += first * from.quantized_stride;
    from.quantized.quantizations += first;
  }
  return from;
}

Status Linear::RunPart(const std::byte* packed, size_t first, size_t rows,
                       const LinearBuffers& buffers, size_t slice, size_t thread) const {
  LinearBuffers part = BuffersFrom(first, buffers);
  if (layout_.scheme == Scheme::kF32) return RunSlice(packed, rows, part, slice, thread);
  // A copy, because the rows behind this part have quantizations of their own.
  std::array<RowQuantization, 2 * kPartRows + kExtraRowQuantizations> quantizations;
  std::copy_n(part.quantized.quantizations, rows, quantizations.data());
  RepeatLast(quantizations.data(), rows);
  part.quantized.quantizations = quantizations.data();
  return RunSlice(packed, rows, part, slice, thread);
}

Status Linear::RunSlice(const std::byte* packed, size_t rows, const LinearBuffers& buffers,
                        size_t slice, size_t thread) const {
  const bool is_last = last_slice_ != nullptr && slice == num_slices_ - 1;
  Operator& op = is_last ? *last_slice_ : *slices_[thread];
  return op.Run(packed + slice * slice_bytes_, rows, buffers,
                buffers.output + slice * slices_.front()->layout.output_channels);
}

}  // namespace cria::xnn
