#include "decode/moe_block.h"

#include "decode/layer_steps.h"
#include "ops/rms_norm.h"
#include "ops/vector.h"

namespace cria {

ArenaLayout::RegionId MoeBlock::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const uint64_t rows = config.enable_moe_block ? shape.options.chunk_tokens : 0;
  return layout.Add("dense outputs beside experts", rows * config.hidden_size * sizeof(float),
                    {kDownStep, kNextNormStep});
}

MoeBlock::MoeBlock(const LayerContext& context, const LayerKind& kind,
                   const MixtureOfExperts::Buffers& buffers, float* gate_up, float* outputs)
    : FeedForward(context),
      outputs_(outputs),
      dense_(context, context.config.intermediate_size_of(kind), gate_up, {}),
      experts_(context, buffers, gate_up) {}

void MoeBlock::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  dense_.AddPlaces(places);
  experts_.AddPlaces(places);
  places.AddVector(TensorRole::kDenseOutputNorm, dense_output_norm_, hidden);
  places.AddVector(TensorRole::kExpertsNorm, experts_norm_, hidden);
  places.AddVector(TensorRole::kExpertsOutputNorm, experts_output_norm_, hidden);
}

Status MoeBlock::Run(size_t rows) {
  CRIA_RETURN_IF_ERROR(dense_.Run(rows));
  const size_t hidden = config_.hidden_size;
  const float epsilon = config_.rms_norm_eps;
  workers_.ForEachRow(rows, hidden, [&](size_t row) {
    ops::RmsNorm(hidden_.block_output() + row * hidden, dense_output_norm_, hidden, epsilon,
                 outputs_ + row * hidden);
  });
  hidden_.NormalizeWithoutWeights(rows);
  experts_.Choose(rows);
  hidden_.BeginBlock(rows, experts_norm_, experts_.input());
  CRIA_RETURN_IF_ERROR(experts_.RunChosen(rows));
  workers_.ForEachRow(rows, hidden, [&](size_t row) {
    float* const output = hidden_.block_output() + row * hidden;
    ops::RmsNorm(output, experts_output_norm_, hidden, epsilon, output);
    ops::Add(outputs_ + row * hidden, hidden, output);
  });
  workers_.Count(OperatorKind::kNorm);
  return {};
}

Status MoeBlock::RunProducts(size_t rows) {
  CRIA_RETURN_IF_ERROR(dense_.RunProducts(rows));
  return experts_.RunProducts(rows);
}

}  // namespace cria
