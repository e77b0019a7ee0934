#include "decode/gated_delta_net.h"

#include <algorithm>
#include <cmath>

#include "decode/kept_rows.h"
#include "decode/layer_steps.h"
#include "decode/softplus.h"
#include "ops/rms_norm.h"
#include "ops/router.h"
#include "ops/swiglu.h"

namespace cria {

static_assert(kMaxLinearKeyHeadDim <= ops::kMaxStateKeyDim);

namespace {

// Queries and keys are x / sqrt(sum(x^2) + epsilon); the class has no field for it.
constexpr float kHeadNormEpsilon = 1e-6f;

size_t StateMatrices(const ModelConfig& config) {
  return config.linear_num_value_heads *
         ops::HeadStateSize(config.linear_key_head_dim, config.linear_value_head_dim);
}

// What a token adds to the matrices: keys, deltas and decays of all heads.
size_t UpdateChannels(const ModelConfig& config) {
  return config.linear_key_channels() + config.linear_value_channels() +
         config.linear_num_value_heads;
}

}  // namespace

GatedDeltaNet::Regions GatedDeltaNet::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const uint64_t rows = config.has_linear_attention() ? shape.options.chunk_tokens : 0;
  const auto bytes = [&](size_t channels) { return rows * channels * sizeof(float); };
  const size_t conv = config.linear_conv_channels();
  const uint64_t slack = rows == 0 ? 0 : xnn::kReadableSlackBytes;
  return {.projected = layout.Add("rows of linear attention",
                                  bytes(conv + config.linear_value_channels()) + slack,
                                  {kQkvStep, kOutputStep}),
          .convolved = layout.Add("convolved rows", bytes(conv + config.linear_num_value_heads),
                                  {kQkvStep, kAttentionStep}),
          .scalars = layout.Add(
              "gates of linear attention",
              bytes(2 * size_t{config.linear_num_value_heads} + config.linear_num_key_heads),
              {kQkvStep, kAttentionStep})};
}

StateSize GatedDeltaNet::SizeOf(const ModelConfig& config) {
  const size_t conv = config.linear_conv_channels();
  return {.state_elements = StateMatrices(config) + (config.linear_conv_kernel_dim - 1) * conv,
          .row_elements = conv + UpdateChannels(config)};
}

GatedDeltaNet::Buffers::Buffers(const Regions& regions, const ArenaView& arena)
    : projected(arena.Pointer<float>(regions.projected)),
      convolved(arena.Pointer<float>(regions.convolved)),
      scalars(arena.Pointer<float>(regions.scalars)) {}

GatedDeltaNet::GatedDeltaNet(const LayerContext& context, const Buffers& buffers,
                             const StateCache::Layer& states)
    : TokenMixer(context),
      buffers_(buffers),
      states_(states),
      key_channels_(context.config.linear_key_channels()),
      value_channels_(context.config.linear_value_channels()),
      conv_channels_(context.config.linear_conv_channels()),
      head_state_size_(ops::HeadStateSize(context.config.linear_key_head_dim,
                                          context.config.linear_value_head_dim)),
      // RmsNorm divides by the root of a mean, not of a sum. Scores are divided by the root of the
      // number of channels, too.
      query_factors_(context.config.linear_key_head_dim,
                     1.0f / static_cast<float>(context.config.linear_key_head_dim)),
      key_factors_(context.config.linear_key_head_dim,
                   1.0f / std::sqrt(static_cast<float>(context.config.linear_key_head_dim))) {}

void GatedDeltaNet::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  const size_t heads = config_.linear_num_value_heads;
  places.Add({.role = TensorRole::kLinearInProj,
              .product = &in_proj_,
              .outputs = conv_channels_ + value_channels_,
              .inputs = hidden,
              .input = hidden_.block_input(),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = buffers_.projected});
  places.Add({.role = TensorRole::kLinearOutProj,
              .product = &out_proj_,
              .outputs = hidden,
              .inputs = value_channels_,
              .input = Output(0),
              .input_stride = conv_channels_ + value_channels_,
              .quantized = hidden_.quantized(),
              .output = hidden_.block_output()});
  places.Add({.role = TensorRole::kLinearBaProj,
              .vector = &ba_proj_,
              .outputs = 2 * heads,
              .inputs = hidden});
  places.AddVector(TensorRole::kLinearConvWeight, conv_weight_,
                   config_.linear_conv_kernel_dim * conv_channels_);
  places.AddVector(TensorRole::kLinearDtBias, dt_bias_, heads);
  places.AddVector(TensorRole::kLinearDecayRate, decay_rate_, heads);
  places.AddVector(TensorRole::kLinearNorm, norm_, config_.linear_value_head_dim);
}

float* GatedDeltaNet::Output(size_t row) const {
  return buffers_.projected + row * (conv_channels_ + value_channels_) + conv_channels_;
}

float* GatedDeltaNet::Reads(size_t row) const {
  // The inputs of the convolution are not needed any more.
  return Output(row) - value_channels_;
}

StateConvolution GatedDeltaNet::Convolution() const {
  return {.taps = {.num_taps = config_.linear_conv_kernel_dim,
                   .channels = conv_channels_,
                   .weights = conv_weight_},
          .states = states_,
          .matrix_elements = StateMatrices(config_),
          .update_channels = UpdateChannels(config_),
          .input = buffers_.projected,
          .input_stride = conv_channels_ + value_channels_,
          .output = buffers_.convolved,
          .output_stride = conv_channels_ + config_.linear_num_value_heads};
}

size_t GatedDeltaNet::KeyHeadOf(size_t value_head) const {
  const size_t key_heads = config_.linear_num_key_heads;
  return config_.linear_tiled_value_heads
             ? value_head % key_heads
             : value_head / (config_.linear_num_value_heads / key_heads);
}

ops::StateUpdates GatedDeltaNet::UpdatesOf(size_t value_head, float* rows, size_t stride,
                                           size_t count) const {
  return {.keys = rows + KeyHeadOf(value_head) * config_.linear_key_head_dim,
          .values = rows + key_channels_ + value_head * config_.linear_value_head_dim,
          .decays = rows + key_channels_ + value_channels_ + value_head,
          .stride = stride,
          .num_rows = count};
}

Status GatedDeltaNet::Store(const BatchPlacement& placement, size_t rows) {
  CRIA_RETURN_IF_ERROR(in_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  workers_.ForEachRow(rows, 2 * config_.linear_num_value_heads * config_.hidden_size,
                      [&](size_t row) { MakeScalars(row); });
  Convolution().Run(placement, rows, workers_);
  workers_.ForEachRow(rows, 2 * key_channels_, [&](size_t row) { NormalizeHeads(row); });
  workers_.Count(OperatorKind::kConvolution);
  // A head depends on no other one, but a row depends on those before it.
  const size_t heads = config_.linear_num_value_heads;
  ForEachRow(workers_.PoolFor(rows), heads, rows * head_state_size_, [&](size_t head) {
    size_t first = 0;
    for (const StateRun& run : placement.states()) {
      RunHead(run, first, head);
      first += run.num_tokens;
    }
  });
  Convolution().KeepUpdates(placement, buffers_.convolved + key_channels_);
  workers_.Count(OperatorKind::kAttention);
  return {};
}

void GatedDeltaNet::MakeScalars(size_t row) const {
  const size_t heads = config_.linear_num_value_heads;
  const size_t hidden = config_.hidden_size;
  float* const betas = buffers_.scalars + row * (2 * heads + config_.linear_num_key_heads);
  float* const decays = buffers_.convolved + row * (conv_channels_ + heads) + conv_channels_;
  ops::RouterScores({hidden_.block_input() + row * hidden, hidden, 1}, ba_proj_, 2 * heads, hidden,
                    betas, 2 * heads);
  for (size_t i = 0; i < heads; ++i) {
    decays[i] = std::exp(-decay_rate_[i] * Softplus(betas[heads + i] + dt_bias_[i]));
    betas[i] = 1.0f / (1.0f + std::exp(-betas[i]));
  }
}

void GatedDeltaNet::NormalizeHeads(size_t row) const {
  const size_t size = config_.linear_key_head_dim;
  const size_t heads = config_.linear_num_value_heads;
  const float epsilon = kHeadNormEpsilon / static_cast<float>(size);
  float* query = buffers_.convolved + row * (conv_channels_ + heads);
  float* products = buffers_.scalars + row * (2 * heads + config_.linear_num_key_heads) + 2 * heads;
  for (size_t i = 0; i < config_.linear_num_key_heads; ++i, query += size, ++products) {
    float* const key = query + key_channels_;
    ops::RmsNorm(query, query_factors_.data(), size, epsilon, query);
    ops::RmsNorm(key, key_factors_.data(), size, epsilon, key);
    ops::RouterScores({query, size, 1}, key, 1, size, products, 1);
  }
}

void GatedDeltaNet::RunHead(const StateRun& run, size_t first, size_t value_head) const {
  const size_t heads = config_.linear_num_value_heads;
  const size_t key_head = KeyHeadOf(value_head);
  const size_t stride = conv_channels_ + heads;
  const size_t scalars_stride = 2 * heads + config_.linear_num_key_heads;
  const KeptRows kept = Convolution().KeptUpdates(run.place);
  float* const rows = buffers_.convolved + first * stride;
  const float* const scalars = buffers_.scalars + first * scalars_stride;
  ops::DeltaRule({.key_dim = config_.linear_key_head_dim,
                  .value_dim = config_.linear_value_head_dim,
                  .state = states_.State(run.place) + value_head * head_state_size_,
                  .is_empty = run.state_tokens == 0},
                 UpdatesOf(value_head, kept.rows, kept.channels, run.num_kept_rows),
                 UpdatesOf(value_head, rows + key_channels_, stride, run.num_tokens),
                 {.queries = rows + key_head * config_.linear_key_head_dim,
                  .query_stride = stride,
                  .betas = scalars + value_head,
                  .key_products = scalars + 2 * heads + key_head,
                  .gate_stride = scalars_stride,
                  .outputs = Reads(first) + value_head * config_.linear_value_head_dim,
                  .output_stride = conv_channels_ + value_channels_},
                 run.new_state_tokens - run.state_tokens);
}

void GatedDeltaNet::Keep(std::span<const uint32_t> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    // The gates follow what was read.
    if (rows[i] != i) std::copy_n(Reads(rows[i]), 2 * value_channels_, Reads(i));
  }
}

void GatedDeltaNet::GateOutput(size_t row) const {
  const size_t size = config_.linear_value_head_dim;
  float* read = Reads(row);
  float* gate = Output(row);
  for (size_t i = 0; i < config_.linear_num_value_heads; ++i, read += size, gate += size) {
    ops::RmsNorm(read, norm_, size, config_.rms_norm_eps, read);
    ops::SwiGlu(gate, read, size, gate);
  }
}

Status GatedDeltaNet::Mix(const BatchPlacement& placement, size_t rows) {
  static_cast<void>(placement);
  const bool is_made_ready = out_proj_.input_form() != xnn::InputForm::kF32;
  workers_.ForEachRow(rows, value_channels_, [&](size_t row) {
    GateOutput(row);
    if (is_made_ready) hidden_.MakeReady(out_proj_, Output(row), row);
  });
  workers_.Count(OperatorKind::kAttention);
  return out_proj_.Run(rows, OperatorKind::kOProj, workers_);
}

Status GatedDeltaNet::RunProducts(size_t rows, size_t mixed_rows) {
  CRIA_RETURN_IF_ERROR(in_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  return mixed_rows == 0 ? Status() : out_proj_.Run(mixed_rows, OperatorKind::kOProj, workers_);
}

std::span<float> GatedDeltaNet::StateAfter(size_t place, size_t num_rows,
                                           std::span<float> scratch) const {
  if (num_rows == 0) return {states_.State(place), states_.size.state_elements};
  const StateConvolution convolution = Convolution();
  const std::span<float> later = convolution.CopyState(place, num_rows, scratch);
  const KeptRows kept = convolution.KeptUpdates(place);
  for (size_t head = 0; head < config_.linear_num_value_heads; ++head) {
    ops::DeltaRule({.key_dim = config_.linear_key_head_dim,
                    .value_dim = config_.linear_value_head_dim,
                    .state = later.data() + head * head_state_size_},
                   UpdatesOf(head, kept.rows, kept.channels, num_rows), {}, {}, num_rows);
  }
  return later;
}

}  // namespace cria
