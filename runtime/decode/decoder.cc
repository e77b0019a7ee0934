#include "decode/decoder.h"

#include <algorithm>

#include "core/format.h"
#include "core/numeric.h"
#include "ops/hadamard.h"
#include "ops/kv_cache_shift.h"
#include "ops/rms_norm.h"
#include "ops/soft_cap.h"
#include "ops/vector.h"

namespace cria {

static_assert(kMaxHeadDim <= ops::kMaxHeadDim);

Status Decoder::Forward(const Batch& batch) {
  num_logits_ = 0;
  CRIA_RETURN_IF_ERROR(CheckBatch(batch));
  const auto lock = LockPools();
  CRIA_RETURN_IF_ERROR(PlaceRuns(batch));
  CRIA_RETURN_IF_ERROR(Embed(batch.tokens));
  // After this, nothing fails on one rank alone, so that all take part in the same exchanges.
  if (link_ != nullptr) CRIA_RETURN_IF_ERROR(link_->BeginForward(batch, pages_));
  return RunPlaced(batch.tokens.size());
}

Status Decoder::RunPlaced(size_t rows) {
  // The time in which rank 0 tells the others what to compute is not counted.
  if (profile_ != nullptr) profile_->Resume();
  ForEachRow(rows, config_.hidden_size, [&](size_t row) {
    const Layer& first = layers_.front();
    Normalize(HiddenRow(row), row, first.input_layernorm, first.qkv_proj);
  });
  Count(OperatorKind::kNorm);
  for (size_t i = 0; i < layers_.size(); ++i) {
    CRIA_RETURN_IF_ERROR(AttentionBlock(layers_[i], rows));
    const Layer* const next = i + 1 < layers_.size() ? &layers_[i + 1] : nullptr;
    CRIA_RETURN_IF_ERROR(FeedForwardBlock(layers_[i], rows, next));
  }
  num_logits_ = num_placed_logits_;
  logits_begin_ = logits_end_ = 0;
  return {};
}

Status Decoder::CheckBatch(const Batch& batch) const {
  const size_t context = context_tokens();
  const size_t num_tokens = batch.tokens.size();
  if (num_tokens > options_.chunk_tokens || batch.runs.size() > options_.num_sequences) {
    return Fail(
        ErrorCode::kOutOfRange,
        Format("{} tokens of {} sequences do not fit a chunk of {} tokens of {}", num_tokens,
               batch.runs.size(), options_.chunk_tokens, options_.num_sequences));
  }
  size_t run_tokens = 0;
  for (const BatchRun& run : batch.runs) {
    if (run.num_tokens == 0 || run.num_tokens > num_tokens || run.first_position > context ||
        run.num_tokens > context - run.first_position) {
      return Fail(ErrorCode::kOutOfRange,
                  Format("{} tokens at position {} do not fit a context of {}", run.num_tokens,
                         run.first_position, context));
    }
    if (run.num_logits > run.num_tokens) {
      return Fail(ErrorCode::kOutOfRange, Format("{} rows of logits are more than the {} tokens",
                                                 run.num_logits, run.num_tokens));
    }
    run_tokens += run.num_tokens;
  }
  if (num_tokens == 0 || run_tokens != num_tokens) {
    return Fail(ErrorCode::kOutOfRange,
                Format("a batch of {} tokens has runs of {}", num_tokens, run_tokens));
  }
  // If several ranks compute the model, each has only a part of the output head.
  const size_t vocab_size = embedding_->num_rows();
  for (const int32_t id : batch.tokens) {
    if (id < 0 || static_cast<uint32_t>(id) >= vocab_size) {
      return Fail(ErrorCode::kOutOfRange,
                  Format("token id {} is outside the vocabulary of {}", id, vocab_size));
    }
  }
  return {};
}

Status Decoder::PlaceRuns(const Batch& batch) {
  size_t row = 0;
  num_runs_ = num_placed_logits_ = 0;
  for (const BatchRun& run : batch.runs) {
    CRIA_RETURN_IF_ERROR(pages_.Truncate(run.sequence, run.first_position));
    CRIA_RETURN_IF_ERROR(pages_.Extend(run.sequence, run.first_position + run.num_tokens));
    CRIA_RETURN_IF_ERROR(MoveRows(pages_.moves()));
    for (size_t group = 0; group < pages_.num_groups(); ++group) {
      PlaceRun(run, row, group, pages_.Table(run.sequence, group));
    }
    PlaceLogits(run, row);
    row += run.num_tokens;
  }
  return {};
}

Status Decoder::ComputePlaced(const Batch& batch, std::span<const ops::KvPageTable> tables) {
  num_logits_ = 0;
  CRIA_RETURN_IF_ERROR(CheckBatch(batch));
  const auto lock = LockPools();
  size_t row = 0;
  num_runs_ = num_placed_logits_ = 0;
  for (const BatchRun& run : batch.runs) {
    for (size_t group = 0; group < pages_.num_groups(); ++group) {
      PlaceRun(run, row, group, tables[num_runs_ * pages_.num_groups() + group]);
    }
    PlaceLogits(run, row);
    row += run.num_tokens;
  }
  CRIA_RETURN_IF_ERROR(Embed(batch.tokens));
  return RunPlaced(batch.tokens.size());
}

void Decoder::PlaceLogits(const BatchRun& run, size_t first_row) {
  ++num_runs_;
  const size_t end = first_row + run.num_tokens;
  for (size_t i = run.num_logits; i > 0; --i) {
    logit_rows_[num_placed_logits_++] = static_cast<uint32_t>(end - i);
  }
}

void Decoder::PlaceRun(const BatchRun& run, size_t first_row, size_t group,
                       const ops::KvPageTable& table) {
  runs_[group * options_.num_sequences + num_runs_] = {
      .table = table,
      .first_position = run.first_position,
      .num_rows = run.num_tokens,
      .queries = qkv_ + first_row * config_.qkv_channels(),
      .query_stride = config_.qkv_channels(),
      .output = attention_output_ + first_row * config_.query_channels(),
      .output_stride = config_.query_channels()};
  BatchRow* const rows = rows_ + group * options_.chunk_tokens + first_row;
  for (size_t i = 0; i < run.num_tokens; ++i) {
    const size_t position = run.first_position + i;
    rows[i] = {.position = static_cast<uint32_t>(position),
               .cache_row = static_cast<uint32_t>(table.Row(position))};
  }
}

Result<std::span<float>> Decoder::Logits(size_t row) {
  if (row >= num_logits_) {
    return Fail(ErrorCode::kOutOfRange,
                Format("there are logits for {} rows, not for row {}", num_logits_, row));
  }
  if (row < logits_begin_ || row >= logits_end_) {
    const size_t rows = std::min(options_.max_logit_rows, num_logits_ - row);
    CRIA_RETURN_IF_ERROR(ComputeLogits(row, rows));
  }
  const size_t vocab_size = config_.vocab_size;
  return std::span(logits_ + (row - logits_begin_) * vocab_size, vocab_size);
}

Status Decoder::ComputeLogits(size_t first, size_t rows) {
  logits_begin_ = logits_end_ = first;
  const auto lock = LockPools();
  if (link_ != nullptr) CRIA_RETURN_IF_ERROR(link_->BeginLogits(first, rows));
  if (profile_ != nullptr) profile_->Resume();
  ForEachRow(rows, config_.hidden_size, [&](size_t row) {
    const float* hidden = HiddenRow(logit_rows_[first + row]);
    if (config_.rotated_residual) hidden = TurnBack(hidden, row);
    Normalize(hidden, row, norm_, lm_head_);
  });
  Count(OperatorKind::kNorm);
  CRIA_RETURN_IF_ERROR(Multiply(lm_head_, rows, OperatorKind::kLmHead));
  CapLogits(rows);
  if (link_ != nullptr) {
    const std::span logits(logits_, options_.max_logit_rows * config_.vocab_size);
    CRIA_RETURN_IF_ERROR(link_->GatherLogits(logits, rows));
  }
  logits_end_ = first + rows;
  return {};
}

void Decoder::CapLogits(size_t rows) {
  if (config_.final_logit_softcapping == 0.0f) return;
  const size_t size = rows * lm_head_.linear->layout().output_channels;
  const size_t num_tasks = DivideRoundingUp(size, kMinTaskElements);
  cria::ForEachRow(PoolFor(rows), num_tasks, kMinTaskElements, [&](size_t index) {
    const size_t first = index * kMinTaskElements;
    ops::SoftCap(config_.final_logit_softcapping, std::min(kMinTaskElements, size - first),
                 logits_ + first);
  });
  Count(OperatorKind::kLmHead);
}

Status Decoder::Move(std::span<const PageMove> moves) {
  const auto lock = LockPools();
  return MoveRows(moves);
}

Status Decoder::MoveRows(std::span<const PageMove> moves) {
  if (moves.empty()) return {};
  if (link_ != nullptr) CRIA_RETURN_IF_ERROR(link_->BeginMove(moves));
  const size_t rope_width = config_.rotary_channels() / 2;
  pool_.ParallelFor(layers_.size(), [&](size_t index) {
    const Layer& layer = layers_[index];
    for (const PageMove& move : moves) {
      if (move.group != layer.kv_group) continue;
      const bool is_turned = move.distance != 0 && layer.rope_cosines != nullptr;
      const size_t rope_row = move.distance * rope_width;
      ops::MoveRows(layer.cache,
                    {.source_row = move.source_page * kKvPageTokens + move.source_row(),
                     .target_row = move.target_page * kKvPageTokens + move.target_row(),
                     .num_rows = move.num_rows,
                     .position = move.position,
                     .distance = move.distance},
                    is_turned ? layer.rope_cosines + rope_row : nullptr,
                    is_turned ? layer.rope_sines + rope_row : nullptr);
    }
  });
  return {};
}

Status Decoder::Embed(std::span<const int32_t> tokens) {
  if (profile_ != nullptr) profile_->Resume();
  for (size_t row = 0; row < tokens.size(); ++row) {
    CRIA_RETURN_IF_ERROR(embedding_->Read(tokens[row], HiddenRow(row)));
  }
  Count(OperatorKind::kEmbedding);
  if (config_.rotated_residual) {
    ForEachRow(tokens.size(), config_.hidden_size,
               [&](size_t row) { ops::HadamardTransform(HiddenRow(row), config_.hidden_size); });
    Count(OperatorKind::kRotation);
  }
  return {};
}

void Decoder::MakeReady(const Projection& next, const float* input, size_t row) const {
  next.linear->Quantize(input, quantized_, row);
}

void Decoder::Normalize(const float* input, size_t row, const float* weight,
                        const Projection& next) const {
  if (weight == nullptr) return MakeReady(next, input, row);
  float* const normed = normed_ + row * config_.hidden_size;
  ops::RmsNorm(input, weight, config_.hidden_size, config_.rms_norm_eps, normed);
  MakeReady(next, normed, row);
}

const float* Decoder::TurnBack(const float* hidden, size_t row) const {
  float* const turned = normed_ + row * config_.hidden_size;
  std::copy_n(hidden, config_.hidden_size, turned);
  ops::HadamardTransform(turned, config_.hidden_size);
  return turned;
}

const float* Decoder::AddProjected(size_t row, const float* bias, const float* norm) const {
  const size_t size = config_.hidden_size;
  float* const projected = projected_ + row * size;
  float* const hidden = HiddenRow(row);
  if (norm != nullptr) {
    if (bias != nullptr) ops::Add(bias, size, projected);
    ops::RmsNorm(projected, norm, size, config_.rms_norm_eps, projected);
    bias = nullptr;
  }
  ops::Add(projected, size, hidden);
  if (bias != nullptr) ops::Add(bias, size, hidden);
  return hidden;
}

Status Decoder::Multiply(const Projection& projection, size_t rows, OperatorKind kind) {
  const ThreadPool& pool = PoolFor(rows);
  CRIA_RETURN_IF_ERROR(projection.linear->Run(projection.packed, rows, pool));
  for (const Piece& piece : projection.more_pieces) {
    CRIA_RETURN_IF_ERROR(piece.linear->Run(piece.packed, rows, pool));
  }
  Count(kind);
  return {};
}

Status Decoder::RunLayerProducts(size_t rows) {
  if (rows > options_.chunk_tokens) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} rows do not fit a chunk of {}", rows, options_.chunk_tokens));
  }
  num_logits_ = 0;
  for (const Layer& layer : layers_) {
    CRIA_RETURN_IF_ERROR(Multiply(layer.qkv_proj, rows, OperatorKind::kQkvProj));
    CRIA_RETURN_IF_ERROR(Multiply(layer.o_proj, rows, OperatorKind::kOProj));
    if (layer.is_mixture) {
      // Consecutive choices, so that rows have as many experts as there are.
      for (size_t i = 0; i < rows * config_.num_experts_per_tok; ++i) {
        experts_.choices[i] = static_cast<uint32_t>(i % config_.num_experts);
      }
      GroupChoices(rows);
      CRIA_RETURN_IF_ERROR(
          MultiplyExperts(layer.experts_gate_up_proj, rows, OperatorKind::kGateUpProj));
      CRIA_RETURN_IF_ERROR(MultiplyExperts(layer.experts_down_proj, rows, OperatorKind::kDownProj));
    }
    if (layer.intermediate_size == 0) continue;
    CRIA_RETURN_IF_ERROR(Multiply(layer.gate_up_proj, rows, OperatorKind::kGateUpProj));
    CRIA_RETURN_IF_ERROR(Multiply(layer.down_proj, rows, OperatorKind::kDownProj));
  }
  return {};
}

Status Decoder::RunHeadProduct(size_t rows) {
  if (rows > options_.max_logit_rows) {
    return Fail(ErrorCode::kOutOfRange,
                Format("there is no room for {} rows of logits, only for {}", rows,
                       options_.max_logit_rows));
  }
  num_logits_ = 0;
  return Multiply(lm_head_, rows, OperatorKind::kLmHead);
}

}  // namespace cria
