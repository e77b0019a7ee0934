#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/thread_pool.h"
#include "model/tensor_table.h"
#include "xnn/row_quantizer.h"
#include "xnn/xnn_operator.h"

namespace cria::xnn {

// A matrix as it lies in a model file. XNNPACK may read kReadableSlackBytes past the end of `data`.
struct LinearWeights {
  TensorLayout layout;
  std::span<const std::byte> data;
  std::span<const std::byte> scales;  // float for kQc8w, bf16 for kQb4w, empty for kF32.
};

// Where a linear layer reads and writes. kF32 reads `input`; the other schemes read `quantized`.
struct LinearBuffers {
  const float* input = nullptr;
  size_t input_stride = 0;  // In floats, at least input_channels.
  QuantizedRows quantized;
  size_t quantized_stride = 0;  // In bytes, at least padded_input_channels.
  float* output = nullptr;      // Rows are output_channels apart.
};

// output[rows][output_channels] = input[rows][input_channels] × weightsᵀ, by XNNPACK.
class Linear {
 public:
  // Packs the weights into memory of XNNPACK's own; afterwards `weights` is no longer read. May run
  // for several layers at once. The buffers must outlive the layer.
  static Result<Linear> Create(const LinearWeights& weights, const LinearBuffers& buffers);

  Scheme scheme() const { return layout_.scheme; }
  const TensorLayout& layout() const { return layout_; }

  // Multiplies the first `rows` rows, which for quantized input must be all that the quantizer ran
  // over last. Allocates nothing.
  Status Run(size_t rows, const ThreadPool& pool);

 private:
  Linear() = default;
  Status Prepare(size_t rows, pthreadpool* pool);

  OperatorHandle operator_;
  TensorLayout layout_;
  LinearBuffers buffers_;
  size_t prepared_rows_ = 0;
  const pthreadpool* prepared_pool_ = nullptr;
};

}  // namespace cria::xnn
