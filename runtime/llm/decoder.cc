#include "llm/decoder.h"

#include <algorithm>
#include <format>

#include "ops/attention.h"
#include "ops/kv_cache_shift.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/swiglu.h"
#include "ops/vector.h"

namespace cria {

static_assert(kMaxHeadDim <= ops::kMaxHeadDim);

template <typename Task>
void Decoder::ForEachRow(size_t rows, size_t elements, const Task& task) const {
  if (rows * elements < kLeastSharedElements) {
    for (size_t row = 0; row < rows; ++row) task(row);
  } else {
    pool_.ParallelFor(rows, task);
  }
}

Status Decoder::Forward(std::span<const int32_t> tokens, size_t first_position) {
  const size_t context = options_.context_tokens;
  if (tokens.empty() || tokens.size() > options_.chunk_tokens || first_position > context ||
      tokens.size() > context - first_position) {
    return Fail(ErrorCode::kOutOfRange,
                std::format("{} tokens at position {} do not fit a chunk of {} in a context of {}",
                            tokens.size(), first_position, options_.chunk_tokens, context));
  }
  rows_ = 0;
  CRIA_RETURN_IF_ERROR(Embed(tokens));
  for (Layer& layer : layers_) {
    CRIA_RETURN_IF_ERROR(AttentionBlock(layer, tokens.size(), first_position));
    CRIA_RETURN_IF_ERROR(FeedForwardBlock(layer, tokens.size()));
  }
  rows_ = tokens.size();
  return {};
}

Result<std::span<float>> Decoder::Logits(size_t row) {
  if (row >= rows_) {
    return Fail(ErrorCode::kOutOfRange,
                std::format("there are logits for {} rows, not for row {}", rows_, row));
  }
  ops::RmsNorm(hidden_ + row * config_.hidden_size, norm_, config_.hidden_size,
               config_.rms_norm_eps, normed_);
  CRIA_RETURN_IF_ERROR(Project(*normed_quantizer_, *lm_head_, 1));
  return std::span(logits_, config_.vocab_size);
}

Status Decoder::DropPositions(size_t first, size_t count, size_t end) {
  if (first > end || count > end - first || end > options_.context_tokens) {
    return Fail(
        ErrorCode::kOutOfRange,
        std::format("{} positions from {} on cannot be dropped out of {} in a context of {}", count,
                    first, end, options_.context_tokens));
  }
  // Nothing moves; and where the whole context goes, the rope table has no row for it.
  if (count == 0 || first + count == end) return {};
  const size_t rope_width = config_.head_dim / 2;
  const float* cosines = rope_cosines_ + count * rope_width;
  const float* sines = rope_sines_ + count * rope_width;
  pool_.ParallelFor(layers_.size(), [&](size_t layer) {
    ops::DropPositions(layers_[layer].cache, first, count, end, cosines, sines);
  });
  return {};
}

Status Decoder::Embed(std::span<const int32_t> tokens) {
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int32_t id = tokens[row];
    if (id < 0 || static_cast<uint32_t>(id) >= config_.vocab_size) {
      return Fail(ErrorCode::kOutOfRange, std::format("token id {} is outside the vocabulary of {}",
                                                      id, config_.vocab_size));
    }
    CRIA_RETURN_IF_ERROR(embedding_.Read(id, hidden_ + row * config_.hidden_size));
  }
  return {};
}

Status Decoder::AttentionBlock(Layer& layer, size_t rows, size_t first_position) {
  NormalizeRows(layer.input_layernorm, rows);
  CRIA_RETURN_IF_ERROR(Project(*normed_quantizer_, *layer.qkv_proj, rows));
  RotateAndStore(layer, rows, first_position);
  ops::Attention({config_.num_attention_heads, config_.num_key_value_heads, config_.head_dim},
                 layer.cache,
                 {.first_position = first_position,
                  .num_rows = rows,
                  .queries = qkv_,
                  .query_stride = config_.qkv_channels(),
                  .output = attention_output_,
                  .output_stride = config_.query_channels()},
                 arena_.Region(memory_.layout, memory_.attention_scratch), pool_);
  CRIA_RETURN_IF_ERROR(Project(*attention_quantizer_, *layer.o_proj, rows));
  AddProjectedRows(rows);
  return {};
}

Status Decoder::FeedForwardBlock(Layer& layer, size_t rows) {
  NormalizeRows(layer.post_attention_layernorm, rows);
  CRIA_RETURN_IF_ERROR(Project(*normed_quantizer_, *layer.gate_up_proj, rows));
  // The result replaces the gate, where the down projection reads it.
  const size_t intermediate = config_.intermediate_size;
  ForEachRow(rows, 2 * intermediate, [&](size_t row) {
    float* gate = gate_up_ + row * 2 * intermediate;
    ops::SwiGlu(gate, gate + intermediate, intermediate, gate);
  });
  CRIA_RETURN_IF_ERROR(Project(*swiglu_quantizer_, *layer.down_proj, rows));
  AddProjectedRows(rows);
  return {};
}

void Decoder::NormalizeRows(const float* weight, size_t rows) {
  const size_t hidden = config_.hidden_size;
  ForEachRow(rows, hidden, [&](size_t row) {
    ops::RmsNorm(hidden_ + row * hidden, weight, hidden, config_.rms_norm_eps,
                 normed_ + row * hidden);
  });
}

void Decoder::RotateAndStore(const Layer& layer, size_t rows, size_t first_position) {
  const size_t rope_width = config_.head_dim / 2;
  const size_t heads_to_rotate = config_.num_attention_heads + config_.num_key_value_heads;
  ForEachRow(rows, config_.qkv_channels(), [&](size_t row) {
    float* queries = qkv_ + row * config_.qkv_channels();
    float* keys = queries + config_.query_channels();
    float* values = keys + config_.key_value_channels();
    const size_t position = first_position + row;
    ops::ApplyRope(queries, heads_to_rotate, config_.head_dim,
                   rope_cosines_ + position * rope_width, rope_sines_ + position * rope_width);
    ops::StoreKeyValue(layer.cache, position, keys, values);
  });
}

void Decoder::AddProjectedRows(size_t rows) {
  const size_t hidden = config_.hidden_size;
  ForEachRow(rows, hidden, [&](size_t row) {
    ops::Add(projected_ + row * hidden, hidden, hidden_ + row * hidden);
  });
}

Status Decoder::Project(xnn::RowQuantizer& quantizer, xnn::Linear& linear, size_t rows) {
  if (linear.scheme() != Scheme::kF32) CRIA_RETURN_IF_ERROR(quantizer.Run(rows, pool_));
  return linear.Run(rows, pool_);
}

}  // namespace cria
