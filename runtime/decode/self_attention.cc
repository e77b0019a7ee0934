#include "decode/self_attention.h"

#include <algorithm>
#include <cmath>

#include "decode/layer_steps.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/router.h"
#include "ops/vector.h"

namespace cria {

SelfAttention::Regions SelfAttention::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const uint64_t chunk = shape.options.chunk_tokens;
  Regions regions;
  regions.qkv =
      layout.Add("queries, keys and values", chunk * config.most_qkv_channels() * sizeof(float),
                 {kQkvStep, kAttentionStep});
  const uint64_t gates = config.use_attention_gate ? chunk * config.num_attention_heads : 0;
  regions.gates = layout.Add("attention gates", gates * sizeof(float), {kQkvStep, kAttentionStep});
  uint64_t scratch = 0;
  for (const LayerKind& kind : config.layer_kinds) {
    scratch = std::max(scratch, ops::AttentionScratchBytes(
                                    {config.num_attention_heads, config.key_value_heads_of(kind),
                                     config.head_dim_of(kind)},
                                    {.rows = shape.options.chunk_tokens,
                                     .runs = shape.options.num_sequences,
                                     .context_tokens = shape.sequence_tokens()},
                                    shape.num_threads));
  }
  regions.scratch = layout.Add("attention scratch", scratch, {kAttentionStep, kAttentionStep});
  regions.output =
      layout.Add("attention output",
                 chunk * config.most_query_channels() * sizeof(float) + xnn::kReadableSlackBytes,
                 {kAttentionStep, kOutputStep});
  return regions;
}

SelfAttention::Buffers::Buffers(const Regions& regions, const ArenaView& arena)
    : qkv(arena.Pointer<float>(regions.qkv)),
      gates(arena.Pointer<float>(regions.gates)),
      scratch(arena.Region(regions.scratch)),
      output(arena.Pointer<float>(regions.output)) {}

SelfAttention::SelfAttention(const LayerContext& context, const LayerKind& kind,
                             const Buffers& buffers, const KvCache::Layer& cache,
                             size_t begin_position)
    : TokenMixer(context),
      kind_(kind),
      query_channels_(config_.query_channels(kind)),
      key_value_channels_(kind.stores_tokens() ? config_.key_value_channels(kind) : 0),
      qkv_channels_(config_.qkv_channels(kind)),
      shape_{.num_attention_heads = config_.num_attention_heads,
             .num_key_value_heads = config_.key_value_heads_of(kind),
             .head_dim = config_.head_dim_of(kind),
             .window_tokens = kind.sliding_window,
             .begin_position = begin_position,
             .score_factor = kind.score_factor(),
             .score_cap = config_.attn_logit_softcapping},
      buffers_(buffers),
      cache_(cache) {}

void SelfAttention::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  places.Add({.role = TensorRole::kQkvProj,
              .product = &qkv_proj_,
              .outputs = qkv_channels_,
              .inputs = hidden,
              .input = hidden_.block_input(),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = buffers_.qkv});
  places.Add({.role = TensorRole::kOProj,
              .product = &o_proj_,
              .outputs = hidden,
              .inputs = query_channels_,
              .input = buffers_.output,
              .input_stride = query_channels_,
              .quantized = hidden_.quantized(),
              .output = hidden_.block_output()});
  if (config_.use_attention_gate) {
    places.Add({.role = TensorRole::kAttentionGate,
                .vector = &gate_,
                .outputs = config_.num_attention_heads,
                .inputs = hidden});
  }
  places.AddVector(TensorRole::kQkvBias, qkv_bias_, qkv_channels_);
  places.AddVector(TensorRole::kQNorm, q_norm_,
                   config_.joint_qk_norm ? query_channels_ : shape_.head_dim);
  places.AddVector(TensorRole::kKNorm, k_norm_,
                   config_.joint_qk_norm ? key_value_channels_ : shape_.head_dim);
  places.AddVector(TensorRole::kOBias, o_bias_, hidden);
  places.AddVector(TensorRole::kAttnSinks, shape_.sinks, config_.num_attention_heads);
}

Status SelfAttention::Store(const BatchPlacement& placement, size_t rows) {
  CRIA_RETURN_IF_ERROR(qkv_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  return StoreProjected(placement, rows);
}

Status SelfAttention::StoreLast(const BatchPlacement& placement, size_t rows) {
  // The sums of joint norms are those of all rows.
  if (IsNormalizedOverRanks()) return Store(placement, rows);
  CRIA_RETURN_IF_ERROR(
      qkv_proj_.RunStored(rows, {query_channels_, query_channels_ + 2 * key_value_channels_},
                          placement.logit_rows(), OperatorKind::kQkvProj, workers_));
  return StoreProjected(placement, rows);
}

Status SelfAttention::StoreProjected(const BatchPlacement& placement, size_t rows) {
  if (IsNormalizedOverRanks()) {
    CRIA_RETURN_IF_ERROR(
        ranks_.NormalizeJointly({buffers_.qkv, rows * qkv_channels_}, qkv_bias_, q_norm_, k_norm_));
  }
  if (gate_ != nullptr) MakeGates(rows);
  RotateAndStore(placement, rows);
  return {};
}

void SelfAttention::Keep(std::span<const uint32_t> rows) {
  const size_t stride = qkv_channels_;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == i) continue;
    std::copy_n(buffers_.qkv + rows[i] * stride, query_channels_, buffers_.qkv + i * stride);
    if (config_.attn_output_gate) {
      std::copy_n(OutputGates(rows[i]), query_channels_, OutputGates(i));
    }
    if (gate_ == nullptr) continue;
    std::copy_n(buffers_.gates + rows[i] * config_.num_attention_heads, config_.num_attention_heads,
                buffers_.gates + i * config_.num_attention_heads);
  }
}

Status SelfAttention::Mix(const BatchPlacement& placement, size_t rows) {
  Attend(placement, rows);
  return o_proj_.Run(rows, OperatorKind::kOProj, workers_);
}

Status SelfAttention::RunProducts(size_t rows, size_t mixed_rows) {
  CRIA_RETURN_IF_ERROR(qkv_proj_.Run(rows, OperatorKind::kQkvProj, workers_));
  return mixed_rows == 0 ? Status() : o_proj_.Run(mixed_rows, OperatorKind::kOProj, workers_);
}

bool SelfAttention::IsNormalizedOverRanks() const {
  return config_.joint_qk_norm && ranks_.num_ranks() > 1;
}

void SelfAttention::NormalizeHeads(float* heads, size_t channels, const float* weight) const {
  const size_t norm_channels = config_.joint_qk_norm ? channels : shape_.head_dim;
  for (float* head = heads; head != heads + channels; head += norm_channels) {
    ops::RmsNorm(head, weight, norm_channels, config_.rms_norm_eps, head);
  }
}

void SelfAttention::MakeGates(size_t rows) const {
  const size_t hidden = config_.hidden_size;
  const size_t heads = config_.num_attention_heads;
  workers_.ForEachRow(rows, heads * hidden, [&](size_t row) {
    float* const gates = buffers_.gates + row * heads;
    ops::RouterScores({hidden_.block_input() + row * hidden, hidden, 1}, gate_, heads, hidden,
                      gates, heads);
    for (size_t i = 0; i < heads; ++i) gates[i] = 1.0f / (1.0f + std::exp(-gates[i]));
  });
}

float* SelfAttention::OutputGates(size_t row) const {
  return buffers_.qkv + (row + 1) * qkv_channels_ - query_channels_;
}

void SelfAttention::MultiplyByGates(size_t row) const {
  if (config_.attn_output_gate) {
    ops::MultiplyBySigmoid(OutputGates(row), query_channels_,
                           buffers_.output + row * query_channels_);
    return;
  }
  const size_t head_dim = shape_.head_dim;
  const float* const gates = buffers_.gates + row * config_.num_attention_heads;
  float* head = buffers_.output + row * query_channels_;
  for (size_t i = 0; i < config_.num_attention_heads; ++i, head += head_dim) {
    for (size_t j = 0; j < head_dim; ++j) head[j] *= gates[i];
  }
}

void SelfAttention::RotateAndStore(const BatchPlacement& placement, size_t rows) const {
  const RopeTableView& rope = cache_.rope;
  const size_t rotary_channels = config_.rotary_channels(kind_);
  const size_t rope_width = rotary_channels / 2;
  const size_t heads_to_rotate = (query_channels_ + key_value_channels_) / shape_.head_dim;
  const std::span<const BatchRow> places = placement.rows(cache_.group);
  const bool is_normalized = IsNormalizedOverRanks();
  workers_.ForEachRow(rows, qkv_channels_, [&](size_t row) {
    float* queries = buffers_.qkv + row * qkv_channels_;
    float* keys = queries + query_channels_;
    float* values = keys + key_value_channels_;
    const size_t position = places[row].position;
    const ops::KeyShift shift = placement.shift(places[row].sequence, rope);
    const auto normalize = [&] {
      NormalizeHeads(queries, query_channels_, q_norm_);
      NormalizeHeads(keys, key_value_channels_, k_norm_);
    };
    if (!is_normalized) {
      if (qkv_bias_ != nullptr) ops::Add(qkv_bias_, qkv_channels_, queries);
      if (q_norm_ != nullptr && !config_.qk_norm_after_rope) normalize();
    }
    if (rope.cosines != nullptr) {
      ops::ApplyRope(queries, heads_to_rotate, shape_.head_dim, rotary_channels,
                     rope.cosines + position * rope_width, rope.sines + position * rope_width);
    }
    if (shift.distance != 0) {
      ops::ApplyRope(queries, heads_to_rotate, shape_.head_dim, rotary_channels, shift.cosines,
                     shift.sines);
    }
    if (config_.qk_norm_after_rope) normalize();
    if (const float factor = config_.query_factor(position); factor != 1.0f) {
      for (size_t i = 0; i < query_channels_; ++i) queries[i] *= factor;
    }
    if (!kind_.stores_tokens()) return;
    if (config_.v_norm) {
      for (float* head = values; head != values + key_value_channels_; head += shape_.head_dim) {
        ops::RmsNorm(head, nullptr, shape_.head_dim, config_.rms_norm_eps, head);
      }
    }
    ops::StoreKeyValue(cache_.view, places[row].cache_row, position, keys, values, shift);
  });
  workers_.Count(OperatorKind::kRope);
}

void SelfAttention::Attend(const BatchPlacement& placement, size_t rows) const {
  const size_t channels = query_channels_;
  const size_t stride = qkv_channels_;
  const std::span<ops::AttentionRows> runs = placement.runs(cache_.group);
  const std::span<const BatchRow> places = placement.rows(cache_.group);
  size_t row = 0;
  for (ops::AttentionRows& run : runs) {
    run.shift = placement.shift(places[row].sequence, cache_.rope);
    run.queries = buffers_.qkv + row * stride;
    run.query_stride = stride;
    run.output = buffers_.output + row * channels;
    run.output_stride = channels;
    row += run.num_rows;
  }
  ops::Attention(shape_, cache_.view, runs, buffers_.scratch, workers_.PoolFor(rows));
  const bool is_made_ready = o_proj_.input_form() != xnn::InputForm::kF32;
  if (is_made_ready || has_gates()) {
    workers_.ForEachRow(rows, channels, [&](size_t index) {
      if (has_gates()) MultiplyByGates(index);
      if (!is_made_ready) return;
      hidden_.MakeReady(o_proj_, buffers_.output + index * channels, index);
    });
  }
  workers_.Count(OperatorKind::kAttention);
}

}  // namespace cria
