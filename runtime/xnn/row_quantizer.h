#pragma once

#include <cstddef>
#include <cstdint>

#include "core/thread_pool.h"
#include "xnn/xnn_operator.h"

namespace cria::xnn {

// How one row of activations was quantized: value = scale * (int8 - zero_point). Laid out as
// XNNPACK's xnn_quantization_params.
struct RowQuantization {
  int32_t zero_point;
  float scale;
};

// What XNNPACK may read, and ignores, behind the last element of every buffer of activations.
inline constexpr size_t kReadableSlackBytes = 16;
// A kernel computes a tile of up to this many rows whole, and a tile that has fewer repeats its
// last row: buffers of row quantizations are longer by these, which the quantizer fills. XNNPACK's
// own figure, 10, is too small for its kernels of 14 rows.
inline constexpr size_t kExtraRowQuantizations = 32;

// Rows quantized to int8: row r at values + r * stride, with quantizations[r].
struct QuantizedRows {
  int8_t* values = nullptr;
  RowQuantization* quantizations = nullptr;
};

// Quantizes rows of floats to int8 dynamically, each over its own range (XNNPACK's f32 → qd8).
class RowQuantizer {
 public:
  // Reads rows of `channels` floats that lie `input_stride` floats apart from `input`, and writes
  // them `output_stride` bytes apart. The buffers must outlive the quantizer.
  static Result<RowQuantizer> Create(size_t channels, const float* input, size_t input_stride,
                                     QuantizedRows output, size_t output_stride);

  // Quantizes the first `rows` rows, and repeats the last one's quantization behind them: a linear
  // layer must multiply as many rows as were quantized last. Allocates nothing.
  Status Run(size_t rows, const ThreadPool& pool);

 private:
  RowQuantizer() = default;

  OperatorHandle operator_;
  size_t channels_ = 0;
  const float* input_ = nullptr;
  size_t input_stride_ = 0;
  QuantizedRows output_;
  size_t output_stride_ = 0;
  size_t prepared_rows_ = 0;
  const pthreadpool* prepared_pool_ = nullptr;
};

}  // namespace cria::xnn
