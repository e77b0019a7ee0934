#include "xnn/row_quantizer.h"

#include <xnnpack.h>

#include <algorithm>

namespace cria::xnn {

static_assert(sizeof(RowQuantization) == sizeof(xnn_quantization_params));
static_assert(offsetof(RowQuantization, scale) == offsetof(xnn_quantization_params, scale));
static_assert(kReadableSlackBytes >= XNN_EXTRA_BYTES);
static_assert(kExtraRowQuantizations >= XNN_EXTRA_QUANTIZATION_PARAMS);

Result<RowQuantizer> RowQuantizer::Create(size_t channels, const float* input, size_t input_stride,
                                          QuantizedRows output, size_t output_stride) {
  CRIA_RETURN_IF_ERROR(Initialize());
  RowQuantizer quantizer;
  quantizer.channels_ = channels;
  quantizer.input_ = input;
  quantizer.input_stride_ = input_stride;
  quantizer.output_ = output;
  quantizer.output_stride_ = output_stride;
  xnn_operator_t op = nullptr;
  CRIA_RETURN_IF_ERROR(
      CheckStatus(xnn_create_convert_nc_f32_qd8(/*flags=*/0, &op), "creating a quantizer"));
  quantizer.operator_.reset(op);
  return quantizer;
}

Status RowQuantizer::Run(size_t rows, const ThreadPool& pool) {
  pthreadpool* const threads = rows * channels_ < kLeastSharedElements ? nullptr : pool.handle();
  if (rows != prepared_rows_ || threads != prepared_pool_) {
    prepared_rows_ = 0;
    CRIA_RETURN_IF_ERROR(
        CheckStatus(xnn_reshape_convert_nc_f32_qd8(operator_.get(), rows, channels_, input_stride_,
                                                   output_stride_, threads),
                    "shaping a quantizer"));
    CRIA_RETURN_IF_ERROR(
        CheckStatus(xnn_setup_convert_nc_f32_qd8(
                        operator_.get(), input_, output_.values,
                        reinterpret_cast<xnn_quantization_params*>(output_.quantizations)),
                    "setting up a quantizer"));
    prepared_rows_ = rows;
    prepared_pool_ = threads;
  }
  CRIA_RETURN_IF_ERROR(
      CheckStatus(xnn_run_operator(operator_.get(), threads), "quantizing activations"));
  if (rows > 0) {
    RowQuantization* const end = output_.quantizations + rows;
    std::fill_n(end, kExtraRowQuantizations, end[-1]);
  }
  return {};
}

}  // namespace cria::xnn
