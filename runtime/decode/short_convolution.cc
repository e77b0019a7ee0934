#include "decode/short_convolution.h"

#include <algorithm>

#include "core/numeric.h"
#include "decode/kept_rows.h"
#include "decode/layer_steps.h"
#include "ops/vector.h"

namespace cria {
namespace {

// Threads take so many channels at once: a few cache lines of every row.
constexpr size_t kTaskChannels = 64;

}  // namespace

ShortConvolution::Regions ShortConvolution::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const uint64_t bytes =
      uint64_t{shape.options.chunk_tokens} * 3 * config.conv_channels() * sizeof(float) +
      xnn::kReadableSlackBytes;
  return {.projected = layout.Add("gates and inputs of convolutions",
                                  config.has_short_conv() ? bytes : 0, {kQkvStep, kOutputStep})};
}

ShortConvolution::ShortConvolution(const LayerContext& context, float* projected,
                                   const StateCache::Layer& states)
    : TokenMixer(context),
      channels_(context.config.conv_channels()),
      projected_(projected),
      states_(states) {}

void ShortConvolution::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  places.Add({.role = TensorRole::kConvInProj,
              .product = &in_proj_,
              .outputs = 3 * channels_,
              .inputs = hidden,
              .input = hidden_.block_input(),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = projected_});
  places.Add({.role = TensorRole::kConvOutProj,
              .product = &out_proj_,
              .outputs = hidden,
              .inputs = channels_,
              .input = Output(0),
              .input_stride = 3 * channels_,
              .quantized = hidden_.quantized(),
              .output = hidden_.block_output()});
  places.AddVector(TensorRole::kConvWeight, weight_, config_.conv_L_cache * channels_);
  places.AddVector(TensorRole::kConvInBias, in_bias_, 3 * channels_);
  places.AddVector(TensorRole::kConvBias, bias_, channels_);
  places.AddVector(TensorRole::kConvOutBias, out_bias_, hidden);
}

Status ShortConvolution::Store(const BatchPlacement& placement, size_t rows) {
  CRIA_RETURN_IF_ERROR(in_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  if (in_bias_ != nullptr) {
    workers_.ForEachRow(rows, 3 * channels_, [&](size_t row) {
      ops::Add(in_bias_, 3 * channels_, projected_ + row * 3 * channels_);
    });
  }
  // A channel depends on no other one, but a row depends on those before it.
  const size_t num_tasks = DivideRoundingUp(channels_, kTaskChannels);
  ForEachRow(workers_.PoolFor(rows), num_tasks, rows * kTaskChannels, [&](size_t task) {
    const size_t begin = task * kTaskChannels;
    const size_t end = std::min(channels_, begin + kTaskChannels);
    float* projected = projected_;
    for (const StateRun& run : placement.states()) {
      RunChannels(run, projected, begin, end);
      projected += run.num_tokens * 3 * channels_;
    }
  });
  workers_.Count(OperatorKind::kConvolution);
  return {};
}

void ShortConvolution::RunChannels(const StateRun& run, float* projected, size_t begin,
                                   size_t end) const {
  const KeptRows kept = {.rows = states_.State(run.place),
                         .channels = channels_,
                         .num_earlier = config_.conv_L_cache - 1};
  BeginKeptRows(kept, run, begin, end);
  ops::ShortConvolution(
      {.num_taps = config_.conv_L_cache, .channels = channels_, .weights = weight_, .bias = bias_},
      {.rows = projected, .num_rows = run.num_tokens, .earlier = kept.EarlierThan(run)}, begin,
      end);
  MoveKeptRows(kept, run, projected, 3 * channels_, begin, end);
}

StateSize ShortConvolution::SizeOf(const ModelConfig& config) {
  return {.state_elements = (config.conv_L_cache - 1) * config.conv_channels(),
          .row_elements = config.conv_channels()};
}

std::span<float> ShortConvolution::StateAfter(size_t place, size_t num_rows,
                                              std::span<float> scratch) const {
  static_cast<void>(scratch);
  // Each row that is kept behind the state makes it that of one token later.
  return {states_.State(place) + num_rows * states_.size.row_elements, states_.size.state_elements};
}

void ShortConvolution::Keep(std::span<const uint32_t> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != i) std::copy_n(Output(rows[i]), channels_, Output(i));
  }
}

Status ShortConvolution::Mix(const BatchPlacement& placement, size_t rows) {
  static_cast<void>(placement);
  if (out_proj_.input_form() != xnn::InputForm::kF32) {
    workers_.ForEachRow(rows, channels_,
                        [&](size_t row) { hidden_.MakeReady(out_proj_, Output(row), row); });
  }
  workers_.Count(OperatorKind::kConvolution);
  return out_proj_.Run(rows, OperatorKind::kOProj, workers_);
}

Status ShortConvolution::RunProducts(size_t rows, size_t mixed_rows) {
  CRIA_RETURN_IF_ERROR(in_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  return mixed_rows == 0 ? Status() : out_proj_.Run(mixed_rows, OperatorKind::kOProj, workers_);
}

}  // namespace cria
