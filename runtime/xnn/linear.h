#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/platform.h"
#include "core/thread_pool.h"
#include "model/tensor_table.h"
#include "xnn/row_quantizer.h"
#include "xnn/xnn_operator.h"

namespace cria::xnn {

// Where a linear layer reads and writes. kF32 reads `input`; the other schemes read `quantized`.
struct LinearBuffers {
  const float* input = nullptr;
  size_t input_stride = 0;  // In floats, at least input_channels.
  QuantizedRows quantized;
  size_t quantized_stride = 0;  // In bytes, at least padded_input_channels.
  float* output = nullptr;      // Rows are output_channels apart.
};

// XNNPACK looks through the scales of int4 weights even where it takes packed ones, which hold them
// already. These satisfy it while layers are created, and are not needed afterwards.
class StandInScales {
 public:
  // Enough for every layer that takes no more than this.
  static Result<StandInScales> Create(size_t bytes);
  // What a layer takes.
  static size_t BytesFor(const TensorLayout& layout);
  std::span<const uint16_t> values() const;

 private:
  explicit StandInScales(platform::PageBlock block) : block_(std::move(block)) {}
  platform::PageBlock block_;
};

// output[rows][output_channels] = input[rows][input_channels] × weightsᵀ, by XNNPACK.
class Linear {
 public:
  // Multiplies by weights that Pack packed on a processor of this layout, all PackedBytes of them,
  // which must outlive the layer, as must the buffers. May run for several layers at once.
  static Result<Linear> Create(const TensorLayout& layout, std::span<const std::byte> packed,
                               const StandInScales& scales, const LinearBuffers& buffers);
  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;
  ~Linear();

  Scheme scheme() const { return layout_.scheme; }
  const TensorLayout& layout() const { return layout_; }

  // Multiplies the first `rows` rows, which for quantized input must be all that the quantizer ran
  // over last. Allocates nothing.
  Status Run(size_t rows, const ThreadPool& pool);

 private:
  struct WeightsCache;

  Linear();
  Status Prepare(size_t rows, pthreadpool* pool);

  std::unique_ptr<WeightsCache> weights_;  // The operator points to them.
  OperatorHandle operator_;
  TensorLayout layout_;
  LinearBuffers buffers_;
  size_t prepared_rows_ = 0;
  const pthreadpool* prepared_pool_ = nullptr;
};

}  // namespace cria::xnn
