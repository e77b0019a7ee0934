#include "decode/mamba2.h"

#include <algorithm>
#include <cmath>

#include "decode/kept_rows.h"
#include "decode/layer_steps.h"
#include "decode/softplus.h"
#include "ops/rms_norm.h"
#include "ops/router.h"
#include "ops/swiglu.h"
#include "ops/vector.h"

namespace cria {

static_assert(kMaxMambaStateDim <= ops::kMaxStateKeyDim);

namespace {

size_t MambaMatrices(const ModelConfig& config) {
  return config.mamba_n_heads * ops::HeadStateSize(config.mamba_d_state, config.mamba_d_head);
}

// What a token adds to the matrices: decays, inputs and keys of all heads.
size_t MambaUpdateChannels(const ModelConfig& config) {
  return config.mamba_n_heads + config.mamba_channels() + config.mamba_key_channels();
}

}  // namespace

Mamba2::Regions Mamba2::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const uint64_t rows = config.has_mamba() ? shape.options.chunk_tokens : 0;
  const auto bytes = [&](size_t channels) { return rows * channels * sizeof(float); };
  const uint64_t slack = rows == 0 ? 0 : xnn::kReadableSlackBytes;
  return {
      .projected = layout.Add("rows of Mamba", bytes(config.mamba_in_channels()) + slack,
                              {kQkvStep, kOutputStep}),
      .convolved = layout.Add("convolved rows of Mamba",
                              bytes(config.mamba_n_heads + config.mamba_conv_channels()),
                              {kQkvStep, kAttentionStep}),
      .steps = layout.Add("time steps", bytes(config.mamba_n_heads), {kQkvStep, kAttentionStep})};
}

StateSize Mamba2::SizeOf(const ModelConfig& config) {
  const size_t conv = config.mamba_conv_channels();
  return {.state_elements = MambaMatrices(config) + (config.mamba_d_conv - 1) * conv,
          .row_elements = conv + MambaUpdateChannels(config)};
}

Mamba2::Buffers::Buffers(const Regions& regions, const ArenaView& arena)
    : projected(arena.Pointer<float>(regions.projected)),
      convolved(arena.Pointer<float>(regions.convolved)),
      steps(arena.Pointer<float>(regions.steps)) {}

Mamba2::Mamba2(const LayerContext& context, const Buffers& buffers, const StateCache::Layer& states)
    : TokenMixer(context),
      buffers_(buffers),
      states_(states),
      channels_(context.config.mamba_channels()),
      in_channels_(context.config.mamba_in_channels()),
      convolved_stride_(context.config.mamba_n_heads + context.config.mamba_conv_channels()),
      head_state_size_(
          ops::HeadStateSize(context.config.mamba_d_state, context.config.mamba_d_head)) {}

void Mamba2::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  const size_t heads = config_.mamba_n_heads;
  places.Add({.role = TensorRole::kMambaInProj,
              .product = &in_proj_,
              .outputs = in_channels_,
              .inputs = hidden,
              .input = hidden_.block_input(),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = buffers_.projected});
  places.Add({.role = TensorRole::kMambaOutProj,
              .product = &out_proj_,
              .outputs = hidden,
              .inputs = channels_,
              .input = Output(0),
              .input_stride = in_channels_,
              .quantized = hidden_.quantized(),
              .output = hidden_.block_output()});
  places.Add({.role = TensorRole::kMambaDtProj,
              .vector = &weights_.dt_proj,
              .outputs = heads,
              .inputs = hidden});
  places.AddVector(TensorRole::kMambaInBias, weights_.in_bias, in_channels_ + heads);
  places.AddVector(TensorRole::kMambaConvWeight, weights_.conv_weight,
                   config_.mamba_d_conv * config_.mamba_conv_channels());
  places.AddVector(TensorRole::kMambaConvBias, weights_.conv_bias, config_.mamba_conv_channels());
  places.AddVector(TensorRole::kMambaDtBias, weights_.dt_bias, heads);
  places.AddVector(TensorRole::kMambaDecayRate, weights_.decay_rate, heads);
  places.AddVector(TensorRole::kMambaD, weights_.direct, heads);
  places.AddVector(TensorRole::kMambaNorm, weights_.norm, channels_);
  places.AddVector(TensorRole::kMambaOutBias, weights_.out_bias, hidden);
}

StateConvolution Mamba2::Convolution() const {
  return {.taps = {.num_taps = config_.mamba_d_conv,
                   .channels = config_.mamba_conv_channels(),
                   .weights = weights_.conv_weight,
                   .bias = weights_.conv_bias},
          .states = states_,
          .matrix_elements = MambaMatrices(config_),
          .update_channels = MambaUpdateChannels(config_),
          .input = buffers_.projected + channels_,
          .input_stride = in_channels_,
          .output = buffers_.convolved + config_.mamba_n_heads,
          .output_stride = convolved_stride_};
}

size_t Mamba2::GroupOf(size_t head) const {
  return head / (config_.mamba_n_heads / config_.mamba_n_groups);
}

ops::StateUpdates Mamba2::UpdatesOf(size_t head, float* rows, size_t stride, size_t count) const {
  float* const inputs = rows + config_.mamba_n_heads;
  return {.keys = inputs + channels_ + GroupOf(head) * config_.mamba_d_state,
          .values = inputs + head * config_.mamba_d_head,
          .decays = rows + head,
          .stride = stride,
          .num_rows = count};
}

Status Mamba2::Store(const BatchPlacement& placement, size_t rows) {
  const size_t heads = config_.mamba_n_heads;
  CRIA_RETURN_IF_ERROR(in_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  workers_.ForEachRow(rows, heads * config_.hidden_size, [&](size_t row) { MakeSteps(row); });
  Convolution().Run(placement, rows, workers_);
  workers_.ForEachRow(rows, 2 * channels_, [&](size_t row) { ScaleInputs(row); });
  workers_.Count(OperatorKind::kConvolution);
  // A head depends on no other one, but a row depends on those before it.
  ForEachRow(workers_.PoolFor(rows), heads, rows * head_state_size_, [&](size_t head) {
    size_t first = 0;
    for (const StateRun& run : placement.states()) {
      RunHead(run, first, head);
      first += run.num_tokens;
    }
  });
  Convolution().KeepUpdates(placement, Convolved(0));
  workers_.Count(OperatorKind::kAttention);
  return {};
}

void Mamba2::MakeSteps(size_t row) const {
  const size_t heads = config_.mamba_n_heads;
  const size_t hidden = config_.hidden_size;
  float* const steps = buffers_.steps + row * heads;
  float* const decays = Convolved(row);
  ops::RouterScores({hidden_.block_input() + row * hidden, hidden, 1}, weights_.dt_proj, heads,
                    hidden, steps, heads);
  if (weights_.in_bias != nullptr) {
    ops::Add(weights_.in_bias, in_channels_, Output(row));
    ops::Add(weights_.in_bias + in_channels_, heads, steps);
  }
  for (size_t i = 0; i < heads; ++i) {
    steps[i] = Softplus(steps[i] + weights_.dt_bias[i]);
    decays[i] = std::exp(-weights_.decay_rate[i] * steps[i]);
  }
}

void Mamba2::ScaleInputs(size_t row) const {
  const size_t heads = config_.mamba_n_heads;
  const size_t size = config_.mamba_d_head;
  const float* const steps = buffers_.steps + row * heads;
  float* input = Convolved(row) + heads;
  // The inputs of the convolution are not needed any more.
  float* read = Reads(row);
  for (size_t head = 0; head < heads; ++head) {
    for (size_t i = 0; i < size; ++i, ++input, ++read) {
      *read = weights_.direct[head] * *input;
      *input *= steps[head];
    }
  }
}

void Mamba2::RunHead(const StateRun& run, size_t first, size_t head) const {
  const KeptRows kept = Convolution().KeptUpdates(run.place);
  float* const rows = Convolved(first);
  const float* const queries =
      rows + config_.mamba_n_heads + channels_ + config_.mamba_key_channels();
  ops::StateSpace({.key_dim = config_.mamba_d_state,
                   .value_dim = config_.mamba_d_head,
                   .state = states_.State(run.place) + head * head_state_size_,
                   .is_empty = run.state_tokens == 0},
                  UpdatesOf(head, kept.rows, kept.channels, run.num_kept_rows),
                  UpdatesOf(head, rows, convolved_stride_, run.num_tokens),
                  {.queries = queries + GroupOf(head) * config_.mamba_d_state,
                   .query_stride = convolved_stride_,
                   .outputs = Reads(first) + head * config_.mamba_d_head,
                   .output_stride = in_channels_},
                  run.new_state_tokens - run.state_tokens);
}

void Mamba2::Keep(std::span<const uint32_t> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    // What was read follows the gates.
    if (rows[i] != i) std::copy_n(Output(rows[i]), 2 * channels_, Output(i));
  }
}

void Mamba2::GateOutput(size_t row) const {
  float* const output = Output(row);
  ops::SwiGlu(output, Reads(row), channels_, output);
  const size_t size = channels_ / config_.mamba_n_groups;
  for (size_t first = 0; first < channels_; first += size) {
    ops::RmsNorm(output + first, weights_.norm + first, size, config_.rms_norm_eps, output + first);
  }
}

Status Mamba2::Mix(const BatchPlacement& placement, size_t rows) {
  static_cast<void>(placement);
  workers_.ForEachRow(rows, channels_, [&](size_t row) {
    GateOutput(row);
    hidden_.MakeReady(out_proj_, Output(row), row);
  });
  workers_.Count(OperatorKind::kAttention);
  return out_proj_.Run(rows, OperatorKind::kOProj, workers_);
}

Status Mamba2::RunProducts(size_t rows, size_t mixed_rows) {
  CRIA_RETURN_IF_ERROR(in_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  return mixed_rows == 0 ? Status() : out_proj_.Run(mixed_rows, OperatorKind::kOProj, workers_);
}

std::span<float> Mamba2::StateAfter(size_t place, size_t num_rows, std::span<float> scratch) const {
  if (num_rows == 0) return {states_.State(place), states_.size.state_elements};
  const StateConvolution convolution = Convolution();
  const std::span<float> later = convolution.CopyState(place, num_rows, scratch);
  const KeptRows kept = convolution.KeptUpdates(place);
  for (size_t head = 0; head < config_.mamba_n_heads; ++head) {
    ops::StateSpace({.key_dim = config_.mamba_d_state,
                     .value_dim = config_.mamba_d_head,
                     .state = later.data() + head * head_state_size_},
                    UpdatesOf(head, kept.rows, kept.channels, num_rows), {}, {}, num_rows);
  }
  return later;
}

}  // namespace cria
