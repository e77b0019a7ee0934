#include "decode/feed_forward.h"

#include <algorithm>

#include "decode/layer_steps.h"
#include "ops/geglu.h"
#include "ops/swiglu.h"
#include "ops/vector.h"

namespace cria {

GatedAct GatedActOf(HiddenAct act) {
  switch (act) {
    case HiddenAct::kSilu:
    case HiddenAct::kRelu2:  // These have no gate.
    case HiddenAct::kXielu:
      break;
    case HiddenAct::kGeluTanh:
      return ops::GeGluTanh;
    case HiddenAct::kGelu:
      return ops::GeGlu;
  }
  return ops::SwiGlu;
}

size_t WidestDenseFeedForward(const ModelConfig& config) {
  size_t widest = config.shared_expert_intermediate_size;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    if (!config.is_dense(i)) continue;
    widest = std::max(widest, config.intermediate_size_of(config.layer_kind(i)));
  }
  return widest;
}

ArenaLayout::RegionId DenseFeedForward::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const uint64_t row_bytes =
      shape.config.gate_up_rows(WidestDenseFeedForward(shape.config)) * sizeof(float);
  return layout.Add("gate and up rows",
                    shape.options.chunk_tokens * row_bytes + xnn::kReadableSlackBytes,
                    {kGateUpStep, kDownStep});
}

DenseFeedForward::DenseFeedForward(const LayerContext& context, size_t intermediate_size,
                                   float* gate_up, const Roles& roles)
    : FeedForward(context),
      intermediate_size_(intermediate_size),
      gate_up_(gate_up),
      roles_(roles),
      gated_act_(GatedActOf(context.config.hidden_act)) {}

void DenseFeedForward::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  places.Add({.role = roles_.gate_up_proj,
              .product = &gate_up_proj_,
              .outputs = 2 * intermediate_size_,
              .inputs = hidden,
              .input = hidden_.block_input(),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = gate_up_});
  places.Add({.role = roles_.down_proj,
              .product = &down_proj_,
              .outputs = hidden,
              .inputs = intermediate_size_,
              .input = gate_up_,
              .input_stride = 2 * intermediate_size_,
              .quantized = hidden_.quantized(),
              .output = hidden_.block_output()});
  places.AddVector(TensorRole::kGateUpBias, gate_up_bias_, 2 * intermediate_size_);
  places.AddVector(TensorRole::kDownBias, down_bias_, hidden);
}

Status DenseFeedForward::Run(size_t rows) {
  CRIA_RETURN_IF_ERROR(gate_up_proj_.Run(rows, OperatorKind::kGateUpProj, workers_));
  Activate(rows);
  return down_proj_.Run(rows, OperatorKind::kDownProj, workers_);
}

Status DenseFeedForward::RunProducts(size_t rows) {
  CRIA_RETURN_IF_ERROR(gate_up_proj_.Run(rows, OperatorKind::kGateUpProj, workers_));
  return down_proj_.Run(rows, OperatorKind::kDownProj, workers_);
}

void DenseFeedForward::Activate(size_t rows) const {
  const size_t width = intermediate_size_;
  MakeInputs(down_proj_, gate_up_, rows, width, 2 * width,
             [&](size_t row, size_t begin, size_t end) {
               // The result overwrites the gate, from where the down projection reads it.
               float* const gate = gate_up_ + row * 2 * width + begin;
               float* const up = gate + width;
               const size_t size = end - begin;
               if (gate_up_bias_ != nullptr) {
                 ops::Add(gate_up_bias_ + begin, size, gate);
                 ops::Add(gate_up_bias_ + width + begin, size, up);
               }
               gated_act_(gate, up, size, gate);
             });
}

}  // namespace cria
