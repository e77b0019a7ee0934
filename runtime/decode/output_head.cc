#include "decode/output_head.h"

#include <algorithm>

#include "core/format.h"
#include "core/numeric.h"
#include "ops/soft_cap.h"

namespace cria {

ArenaLayout::RegionId OutputHead::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const uint64_t rows = shape.options.max_logit_rows;
  return layout.Add("logits", rows * shape.config.vocab_size * sizeof(float), kWholeLife);
}

OutputHead::OutputHead(const DecoderShape& shape, float* logits, const Workers& workers,
                       RankLink& ranks, const HiddenState& hidden)
    : config_(shape.config),
      max_rows_(shape.options.max_logit_rows),
      logits_(logits),
      workers_(workers),
      ranks_(ranks),
      hidden_(hidden) {}

void OutputHead::AddPlaces(TensorPlaces& places, size_t output_channels) {
  const size_t hidden = config_.hidden_size;
  places.AddVector(TensorRole::kNorm, norm_, hidden);
  places.Add({.role = TensorRole::kLmHead,
              .product = &lm_head_,
              .outputs = output_channels,
              .inputs = hidden,
              .input = hidden_.normed(),
              .input_stride = hidden,
              .quantized = hidden_.quantized(),
              .output = logits_});
}

void OutputHead::Begin(size_t rows) {
  num_rows_ = rows;
  begin_ = end_ = 0;
}

Status OutputHead::CheckRow(size_t row) const {
  if (row < num_rows_) return {};
  return Fail(ErrorCode::kOutOfRange,
              Format("there are logits for {} rows, not for row {}", num_rows_, row));
}

Result<std::span<const float>> OutputHead::Hidden(size_t row) const {
  CRIA_RETURN_IF_ERROR(CheckRow(row));
  const auto lock = workers_.Lock();
  hidden_.NormalizeForHead(row, 0, norm_, lm_head_);
  return std::span(hidden_.normed(), config_.hidden_size);
}

Result<std::span<float>> OutputHead::Logits(size_t row) {
  CRIA_RETURN_IF_ERROR(CheckRow(row));
  if (row < begin_ || row >= end_) {
    CRIA_RETURN_IF_ERROR(Compute(row, std::min(max_rows_, num_rows_ - row)));
  }
  const size_t vocab_size = config_.vocab_size;
  return std::span(logits_ + (row - begin_) * vocab_size, vocab_size);
}

Status OutputHead::Compute(size_t first, size_t rows) {
  begin_ = end_ = first;
  const auto lock = workers_.Lock();
  CRIA_RETURN_IF_ERROR(ranks_.BeginLogits(first, rows));
  workers_.Resume();
  workers_.ForEachRow(rows, config_.hidden_size, [&](size_t row) {
    hidden_.NormalizeForHead(first + row, row, norm_, lm_head_);
  });
  workers_.Count(OperatorKind::kNorm);
  CRIA_RETURN_IF_ERROR(lm_head_.Run(rows, OperatorKind::kLmHead, workers_));
  Cap(rows);
  CRIA_RETURN_IF_ERROR(ranks_.GatherLogits({logits_, max_rows_ * config_.vocab_size}, rows));
  end_ = first + rows;
  return {};
}

void OutputHead::Cap(size_t rows) const {
  if (config_.final_logit_softcapping == 0.0f) return;
  const size_t size = rows * lm_head_.output_channels();
  const size_t num_tasks = DivideRoundingUp(size, kMinTaskElements);
  ForEachRow(workers_.PoolFor(rows), num_tasks, kMinTaskElements, [&](size_t index) {
    const size_t first = index * kMinTaskElements;
    ops::SoftCap(config_.final_logit_softcapping, std::min(kMinTaskElements, size - first),
                 logits_ + first);
  });
  workers_.Count(OperatorKind::kLmHead);
}

Status OutputHead::RunProduct(size_t rows) {
  if (rows > max_rows_) {
    return Fail(ErrorCode::kOutOfRange,
                Format("there is no room for {} rows of logits, only for {}", rows, max_rows_));
  }
  Begin(0);
  return lm_head_.Run(rows, OperatorKind::kLmHead, workers_);
}

}  // namespace cria
