#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/row_quantization.h"
#include "core/thread_pool.h"
#include "model/tensor_table.h"
#include "ops/products/tile_kernel.h"
#include "ops/products/tiled_product.h"
#include "xnn/xnn_operator.h"

namespace cria::xnn {

// Bytes that XNNPACK may read, and ignores, after the last element of every buffer of activations.
inline constexpr size_t kReadableSlackBytes = 16;
// A kernel always computes a whole tile of rows, up to this many; if there are fewer rows, it
// repeats the last one. So buffers of row quantizations have this many extra elements, which Linear
// fills. XNNPACK's own constant, 10, is too small for its kernels of 14 rows.
inline constexpr size_t kExtraRowQuantizations = 32;

// How Linear reads the rows of its input.
enum class InputForm : uint8_t {
  kF32,     // As they are.
  kRows,    // Quantized to int8 with one scale a row, by ops::QuantizeRow, for XNNPACK.
  kBlocks,  // Quantized to ops::QuantizedBlocks, for a kernel of our own.
};

// Quantized rows: row r at values + r * stride, with quantizations[r] in InputForm::kRows.
struct QuantizedRows {
  int8_t* values = nullptr;
  RowQuantization* quantizations = nullptr;
};

// The input and output of a linear layer. InputForm::kF32 reads `input`; the others read
// `quantized`.
struct LinearBuffers {
  const float* input = nullptr;
  size_t input_stride = 0;  // In floats, at least input_channels.
  QuantizedRows quantized;
  // In bytes, a multiple of 4: at least QuantizedBlocks::Bytes(padded_input_channels).
  size_t quantized_stride = 0;
  float* output = nullptr;
  size_t output_stride = 0;  // In floats, at least output_channels.
};

// Consecutive outputs: from `begin` up to, but without, `end`.
struct OutputRange {
  size_t begin = 0;
  size_t end = 0;
};

// output[rows][output_channels] = input[rows][input_channels] × weightsᵀ, for all matrices with one
// layout that use the same buffers, one after another: one matrix for each layer of a model. Uses a
// kernel of our own if there is one, which is faster than XNNPACK's or rounds its input less. One
// thread at a time may call it; it uses a pool inside.
class Linear {
 public:
  // Maximum number of XNNPACK operators that one Linear has: one for all outputs, one for each
  // thread's slices of outputs, and one for the last slice, which may differ from the others.
  static constexpr size_t MaxOperators(size_t num_threads) { return num_threads + 2; }

  // For pools of at most `num_threads`. The buffers must outlive the Linear.
  static Result<Linear> Create(const TensorLayout& layout, const LinearBuffers& buffers,
                               size_t num_threads);
  // Bytes that Create uses temporarily.
  static uint64_t CreationBytes(const TensorLayout& layout);

  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;
  ~Linear();

  const TensorLayout& layout() const { return layout_; }
  InputForm input_form() const;

  // Quantizes a row of input_channels floats to row `row` of `rows`, whose stride is that of the
  // buffers, in this layer's form. Does nothing if that is kF32.
  void Quantize(const float* input, const QuantizedRows& rows, size_t row) const;
  // Does that for the inputs from `begin` up to, but without, `end`, so that threads may share a
  // row. They are multiples of ops::kActivationBlock or input_channels, and in InputForm::kRows,
  // where the scale depends on all inputs, the whole row.
  void QuantizePart(const float* input, size_t begin, size_t end, const QuantizedRows& rows,
                    size_t row) const;

  // Multiplies the first `rows` rows by `packed`: the PackedBytes that Pack packed on a processor
  // with this layout. Allocates nothing.
  Status Run(std::span<const std::byte> packed, size_t rows, const ThreadPool& pool);
  // As Run, but only `kept` of the rows, in ascending order, are multiplied by outputs that are not
  // in `stored`. What the other rows have there is undefined. Nothing is saved where XNNPACK
  // multiplies, and a whole tile of outputs is multiplied if `stored` has a part of it.
  Status RunStored(std::span<const std::byte> packed, size_t rows, const OutputRange& stored,
                   std::span<const uint32_t> kept, const ThreadPool& pool);
  // Multiplies groups of rows with a matrix of their own each. The groups follow one another
  // from the first row on.
  Status RunGroups(std::span<const ops::RowGroup> groups, const ThreadPool& pool);

 private:
  struct Operator;

  Linear();
  // Multiplies groups of rows by a range of outputs that begins with a tile, by a kernel of ours.
  void RunTiles(std::span<const ops::RowGroup> groups, const OutputRange& outputs,
                const ThreadPool& pool) const;
  // Multiplies the first `rows` rows of `buffers`.
  Status RunOperators(const std::byte* packed, size_t rows, const LinearBuffers& buffers,
                      const ThreadPool& pool);
  // `buffers` from row `first` on.
  LinearBuffers BuffersFrom(size_t first, const LinearBuffers& buffers) const;
  // Multiplies `rows` rows of `buffers` from row `first` on by a slice of outputs.
  Status RunPart(const std::byte* packed, size_t first, size_t rows, const LinearBuffers& buffers,
                 size_t slice, size_t thread) const;
  // Multiplies the first `rows` rows of `buffers` by a slice of outputs.
  Status RunSlice(const std::byte* packed, size_t rows, const LinearBuffers& buffers, size_t slice,
                  size_t thread) const;

  TensorLayout layout_;
  LinearBuffers buffers_;
  std::unique_ptr<Operator> whole_;
  // Threads multiply by slices of outputs, each by an operator of its own; there are none if all
  // outputs are one slice.
  size_t num_slices_ = 1;
  uint64_t packed_bytes_ = 0;
  size_t slice_bytes_ = 0;  // Bytes of packed weights in each slice but the last one.
  std::vector<std::unique_ptr<Operator>> slices_;
  std::unique_ptr<Operator> last_slice_;  // Null if the last slice is as large as the others.
  // Null if XNNPACK is used; otherwise, there are no operators.
  const ops::TileKernel* kernel_ = nullptr;
};

}  // namespace cria::xnn
