#include "decode/decoder.h"

namespace cria {

static_assert(kMaxHeadDim <= ops::kMaxHeadDim);

Status Decoder::Forward(const Batch& batch) {
  head_.Begin(0);
  CRIA_RETURN_IF_ERROR(Check(batch));
  const auto lock = workers_.Lock();
  CRIA_RETURN_IF_ERROR(PlaceRuns(batch));
  CRIA_RETURN_IF_ERROR(Embed(batch.tokens));
  // After this, nothing fails on one rank alone, so that all take part in the same exchanges.
  CRIA_RETURN_IF_ERROR(ranks_.BeginForward(batch, cache_.pages()));
  return RunLayers(batch.tokens.size());
}

Status Decoder::ComputePlaced(const Batch& batch, std::span<const ops::KvPageTable> tables) {
  head_.Begin(0);
  CRIA_RETURN_IF_ERROR(Check(batch));
  const auto lock = workers_.Lock();
  const size_t num_groups = cache_.pages().num_groups();
  placement_.Clear();
  for (const BatchRun& run : batch.runs) {
    placement_.Add(run);
    for (size_t group = 0; group < num_groups; ++group) placement_.Place(group, tables[group]);
    tables = tables.subspan(num_groups);
  }
  CRIA_RETURN_IF_ERROR(Embed(batch.tokens));
  return RunLayers(batch.tokens.size());
}

Status Decoder::Check(const Batch& batch) const {
  return CheckBatch(batch, {.chunk_tokens = chunk_tokens(),
                            .num_sequences = max_sequences(),
                            .context_tokens = context_tokens(),
                            // If there are several ranks, each has only a part of the head.
                            .vocab_size = embedding_.num_rows()});
}

Status Decoder::PlaceRuns(const Batch& batch) {
  KvPages& pages = cache_.pages();
  placement_.Clear();
  for (const BatchRun& run : batch.runs) {
    CRIA_RETURN_IF_ERROR(pages.Truncate(run.sequence, run.first_position));
    CRIA_RETURN_IF_ERROR(pages.Extend(run.sequence, run.first_position + run.num_tokens));
    CRIA_RETURN_IF_ERROR(MoveRows(pages.moves()));
    placement_.Add(run);
    for (size_t group = 0; group < pages.num_groups(); ++group) {
      placement_.Place(group, pages.Table(run.sequence, group));
    }
  }
  return {};
}

Status Decoder::Embed(std::span<const int32_t> tokens) {
  workers_.Resume();
  for (size_t row = 0; row < tokens.size(); ++row) {
    CRIA_RETURN_IF_ERROR(embedding_.Read(tokens[row], hidden_.Row(row)));
  }
  workers_.Count(OperatorKind::kEmbedding);
  if (shape_.config.rotated_residual) {
    hidden_.Rotate(tokens.size());
    workers_.Count(OperatorKind::kRotation);
  }
  return {};
}

Status Decoder::RunLayers(size_t rows) {
  // The time in which rank 0 tells the others what to compute is not counted.
  workers_.Resume();
  const DecoderLayer& first = layers_.front();
  hidden_.BeginBlock(rows, first.input_layernorm, first.mixer->input());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const DecoderLayer& layer = layers_[i];
    CRIA_RETURN_IF_ERROR(layer.mixer->Store(placement_, rows));
    if (layer.is_last_to_store) rows = KeepLogitRows(*layer.mixer);
    if (rows == 0) return {};
    CRIA_RETURN_IF_ERROR(layer.mixer->Mix(placement_, rows));
    CRIA_RETURN_IF_ERROR(
        hidden_.EndBlock(rows, layer.mixer->output_bias(), layer.attention_output_norm,
                         layer.post_attention_layernorm, &layer.feed_forward->input()));
    CRIA_RETURN_IF_ERROR(layer.feed_forward->Run(rows));
    const DecoderLayer* const next = i + 1 < layers_.size() ? &layers_[i + 1] : nullptr;
    CRIA_RETURN_IF_ERROR(hidden_.EndBlock(rows, layer.feed_forward->output_bias(),
                                          layer.mlp_output_norm,
                                          next == nullptr ? nullptr : next->input_layernorm,
                                          next == nullptr ? nullptr : &next->mixer->input()));
  }
  head_.Begin(rows);
  return {};
}

size_t Decoder::KeepLogitRows(TokenMixer& mixer) {
  const std::span<const uint32_t> rows = placement_.logit_rows();
  mixer.Keep(rows);
  hidden_.Keep(rows);
  placement_.KeepLogitRows();
  return rows.size();
}

Result<std::span<float>> Decoder::Logits(size_t row) { return head_.Logits(row); }

Status Decoder::Move(std::span<const PageMove> moves) {
  const auto lock = workers_.Lock();
  return MoveRows(moves);
}

Status Decoder::MoveRows(std::span<const PageMove> moves) {
  if (moves.empty()) return {};
  CRIA_RETURN_IF_ERROR(ranks_.BeginMove(moves));
  cache_.Move(moves, workers_.PoolFor(1));
  return {};
}

Status Decoder::ExchangeKvRows(const KvRows& rows, KvDirection direction) {
  const auto lock = workers_.Lock();
  return ranks_.ExchangeKvRows(rows, cache_.layer(rows.layer).view, direction);
}

}  // namespace cria
