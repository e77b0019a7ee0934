// A layer's attention. decoder.cc has what is around the layers.

#include "decode/decoder.h"
#include "ops/attention.h"
#include "ops/kv_cache_view.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/vector.h"

namespace cria {

Status Decoder::AttentionBlock(Layer& layer, size_t rows) {
  CRIA_RETURN_IF_ERROR(Multiply(layer.qkv_proj, rows, OperatorKind::kQkvProj));
  if (IsNormalizedOverRanks()) {
    CRIA_RETURN_IF_ERROR(link_->NormalizeJointly({qkv_, rows * config_.qkv_channels()},
                                                 layer.qkv_bias, layer.q_norm, layer.k_norm));
  }
  RotateAndStore(layer, rows);
  Attend(layer, rows);
  CRIA_RETURN_IF_ERROR(Multiply(layer.o_proj, rows, OperatorKind::kOProj));
  CRIA_RETURN_IF_ERROR(SumOverRanks(rows));
  ForEachRow(rows, config_.hidden_size, [&](size_t row) {
    const float* const hidden = AddProjected(row, layer.o_bias, layer.attention_output_norm);
    Normalize(hidden, row, layer.post_attention_layernorm, FeedForwardInput(layer));
  });
  Count(OperatorKind::kNorm);
  return {};
}

void Decoder::NormalizeHeads(float* heads, size_t channels, const float* weight) const {
  const size_t norm_channels = config_.joint_qk_norm ? channels : config_.head_dim;
  for (float* head = heads; head != heads + channels; head += norm_channels) {
    ops::RmsNorm(head, weight, norm_channels, config_.rms_norm_eps, head);
  }
}

void Decoder::RotateAndStore(const Layer& layer, size_t rows) {
  const size_t rope_width = config_.rotary_channels() / 2;
  const size_t heads_to_rotate = config_.num_attention_heads + config_.num_key_value_heads;
  const BatchRow* const places = rows_ + layer.kv_group * options_.chunk_tokens;
  const bool is_normalized = IsNormalizedOverRanks();
  ForEachRow(rows, config_.qkv_channels(), [&](size_t row) {
    float* queries = qkv_ + row * config_.qkv_channels();
    float* keys = queries + config_.query_channels();
    float* values = keys + config_.key_value_channels();
    const size_t position = places[row].position;
    if (!is_normalized) {
      if (layer.qkv_bias != nullptr) ops::Add(layer.qkv_bias, config_.qkv_channels(), queries);
      if (layer.q_norm != nullptr) {
        NormalizeHeads(queries, config_.query_channels(), layer.q_norm);
        NormalizeHeads(keys, config_.key_value_channels(), layer.k_norm);
      }
    }
    if (layer.rope_cosines != nullptr) {
      ops::ApplyRope(queries, heads_to_rotate, config_.head_dim, config_.rotary_channels(),
                     layer.rope_cosines + position * rope_width,
                     layer.rope_sines + position * rope_width);
    }
    ops::StoreKeyValue(layer.cache, places[row].cache_row, position, keys, values);
  });
  Count(OperatorKind::kRope);
}

void Decoder::Attend(const Layer& layer, size_t rows) {
  const size_t channels = config_.query_channels();
  ops::Attention(layer.attention, layer.cache,
                 std::span(runs_ + layer.kv_group * options_.num_sequences, num_runs_),
                 arena_.Region(memory_.layout, memory_.attention_scratch), PoolFor(rows));
  if (layer.o_proj.linear->layout().scheme != Scheme::kF32) {
    ForEachRow(rows, channels, [&](size_t row) {
      MakeReady(layer.o_proj, attention_output_ + row * channels, row);
    });
  }
  Count(OperatorKind::kAttention);
}

}  // namespace cria
