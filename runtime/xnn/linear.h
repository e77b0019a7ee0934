#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/row_quantization.h"
#include "core/thread_pool.h"
#include "model/tensor_table.h"
#include "ops/qb4w_product.h"
#include "xnn/xnn_operator.h"

namespace cria::xnn {

// What XNNPACK may read, and ignores, behind the last element of every buffer of activations.
inline constexpr size_t kReadableSlackBytes = 16;
// A kernel computes a tile of up to this many rows whole, and a tile that has fewer repeats its
// last row: buffers of row quantizations are longer by these, which Linear fills. XNNPACK's own
// figure, 10, is too small for its kernels of 14 rows.
inline constexpr size_t kExtraRowQuantizations = 32;

// Rows quantized to int8: row r at values + r * stride, with quantizations[r].
struct QuantizedRows {
  int8_t* values = nullptr;
  RowQuantization* quantizations = nullptr;
};

// Where a linear layer reads and writes. kF32 reads `input`; the other schemes read `quantized`.
struct LinearBuffers {
  const float* input = nullptr;
  size_t input_stride = 0;  // In floats, at least input_channels.
  QuantizedRows quantized;
  size_t quantized_stride = 0;  // In bytes, at least padded_input_channels.
  float* output = nullptr;      // Rows are output_channels apart.
};

// output[rows][output_channels] = input[rows][input_channels] × weightsᵀ, for all matrices of one
// layout that work on the same buffers: one for each layer of a model, by turns. By XNNPACK, but
// for int4 weights where our own product is faster. Not for several threads at once; inside, it
// uses a pool.
class Linear {
 public:
  // The most operators of XNNPACK that one takes.
  static constexpr size_t kMaxOperators = 3;

  // The buffers must outlive it.
  static Result<Linear> Create(const TensorLayout& layout, const LinearBuffers& buffers);
  // Bytes that Create takes for a moment.
  static uint64_t CreationBytes(const TensorLayout& layout);

  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;
  ~Linear();

  const TensorLayout& layout() const { return layout_; }

  // Multiplies the first `rows` rows by `packed`, all PackedBytes of what Pack packed on a
  // processor of this layout. Allocates nothing.
  Status Run(std::span<const std::byte> packed, size_t rows, const ThreadPool& pool);

 private:
  struct Operator;

  Linear();
  Status RunOperators(std::span<const std::byte> packed, size_t rows, const ThreadPool& pool);
  Status RunSlices(std::span<const std::byte> packed, size_t rows, pthreadpool* threads);

  TensorLayout layout_;
  LinearBuffers buffers_;
  std::unique_ptr<Operator> whole_;
  // Many rows are multiplied by a few outputs after the others; null where the whole is few.
  std::unique_ptr<Operator> slice_;
  std::unique_ptr<Operator> last_slice_;  // Null where it is as large as the others.
  size_t slice_bytes_ = 0;                // Of packed weights.
  // Where our own product multiplies, and there are no operators.
  std::optional<ops::Qb4wTiles8c8> tiles_;
};

}  // namespace cria::xnn
