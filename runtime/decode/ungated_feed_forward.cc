#include "decode/ungated_feed_forward.h"

#include "decode/layer_steps.h"
#include "ops/squared_relu.h"
#include "ops/vector.h"
#include "ops/xielu.h"

namespace cria {

UngatedFeedForward::UngatedFeedForward(const LayerContext& context, size_t layer, float* rows)
    : FeedForward(context), layer_(layer), inner_(rows) {}

void UngatedFeedForward::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  const size_t width = config_.intermediate_size;
  places.Add({.role = TensorRole::kGateUpProj,
              .product = &up_proj_,
              .outputs = width,
              .inputs = hidden,
              .input = hidden_.block_input(),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = inner_});
  places.Add({.role = TensorRole::kDownProj,
              .product = &down_proj_,
              .outputs = hidden,
              .inputs = width,
              .input = inner_,
              .input_stride = width,
              .quantized = hidden_.quantized(),
              .output = hidden_.block_output()});
  places.AddVector(TensorRole::kGateUpBias, up_bias_, width);
  places.AddVector(TensorRole::kDownBias, down_bias_, hidden);
}

Status UngatedFeedForward::Run(size_t rows) {
  CRIA_RETURN_IF_ERROR(up_proj_.Run(rows, OperatorKind::kGateUpProj, workers_));
  Activate(rows);
  return down_proj_.Run(rows, OperatorKind::kDownProj, workers_);
}

Status UngatedFeedForward::RunProducts(size_t rows) {
  CRIA_RETURN_IF_ERROR(up_proj_.Run(rows, OperatorKind::kGateUpProj, workers_));
  return down_proj_.Run(rows, OperatorKind::kDownProj, workers_);
}

void UngatedFeedForward::Activate(size_t rows) const {
  const size_t width = config_.intermediate_size;
  MakeInputs(down_proj_, inner_, rows, width, width, [&](size_t row, size_t begin, size_t end) {
    float* const inner = inner_ + row * width + begin;
    const size_t size = end - begin;
    if (up_bias_ != nullptr) ops::Add(up_bias_ + begin, size, inner);
    if (config_.hidden_act == HiddenAct::kXielu) {
      const float* const numbers = config_.xielu.data() + layer_ * kXieluNumbers;
      ops::Xielu(inner, {numbers[0], numbers[1], numbers[2], numbers[3]}, size, inner);
    } else {
      ops::SquaredRelu(inner, size, inner);
    }
  });
}

}  // namespace cria
