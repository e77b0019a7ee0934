#include "decode/decoder.h"

#include <algorithm>

namespace cria {

static_assert(kMaxHeadDim <= ops::kMaxHeadDim);

Status Decoder::Forward(const Batch& batch) {
  head_.Begin(0);
  CRIA_RETURN_IF_ERROR(Check(batch));
  const auto lock = workers_.Lock();
  CRIA_RETURN_IF_ERROR(PlaceRuns(batch));
  CRIA_RETURN_IF_ERROR(Embed(batch));
  // After this, nothing fails on one rank alone, so that all take part in the same exchanges.
  CRIA_RETURN_IF_ERROR(ranks_.BeginForward(batch, sequences_.pages(), placement_.states()));
  const Status run = RunLayers(batch);
  if (RecurrentStates* const states = sequences_.states(); states != nullptr) {
    for (const BatchRun& computed : batch.runs) {
      run ? states->Advance(computed.sequence) : states->Lose(computed.sequence);
    }
  }
  return run;
}

Status Decoder::ComputePlaced(const Batch& batch, std::span<const SequenceShift> shifts,
                              std::span<const ops::KvPageTable> tables,
                              std::span<const StateRun> states) {
  head_.Begin(0);
  CRIA_RETURN_IF_ERROR(Check(batch));
  const auto lock = workers_.Lock();
  const size_t num_groups = sequences_.pages().num_groups();
  placement_.Clear();
  for (size_t i = 0; i < batch.runs.size(); ++i) {
    placement_.Add(batch.runs[i], shifts[i]);
    for (size_t group = 0; group < num_groups; ++group) placement_.Place(group, tables[group]);
    tables = tables.subspan(num_groups);
  }
  for (const StateRun& state : states) placement_.PlaceState(state);
  CRIA_RETURN_IF_ERROR(Embed(batch));
  return RunLayers(batch);
}

Status Decoder::Check(const Batch& batch) const {
  if (!batch.embeddings.empty() && ranks_.num_ranks() > 1) {
    return Fail(ErrorCode::kUnsupported, "embeddings in a batch are not sent to other ranks");
  }
  if (!batch.embeddings.empty() && shape_.config.hidden_size_per_layer_input != 0) {
    return Fail(ErrorCode::kUnsupported,
                "embeddings in a batch have no token, which per-layer inputs need");
  }
  return CheckBatch(batch, {.chunk_tokens = chunk_tokens(),
                            .num_sequences = max_sequences(),
                            .context_tokens = context_tokens(),
                            // If there are several ranks, each has only a part of the head.
                            .vocab_size = embedding_.num_tokens()});
}

Status Decoder::PlaceRuns(const Batch& batch) {
  const KvPages& pages = sequences_.pages();
  placement_.Clear();
  for (const BatchRun& run : batch.runs) {
    CRIA_RETURN_IF_ERROR(sequences_.Truncate(run.sequence, run.first_position));
    CRIA_RETURN_IF_ERROR(CarryOutLocked());
    CRIA_RETURN_IF_ERROR(sequences_.Extend(run.sequence, run.first_position + run.num_tokens));
    CRIA_RETURN_IF_ERROR(CarryOutLocked());
    placement_.Add(run, pages.shift(run.sequence));
    for (size_t group = 0; group < pages.num_groups(); ++group) {
      placement_.Place(group, pages.Table(run.sequence, group));
    }
    if (const RecurrentStates* const states = sequences_.states(); states != nullptr) {
      placement_.PlaceState(states->Run(run.sequence));
    }
  }
  return {};
}

Status Decoder::ReadEmbedding(const Batch& batch, size_t row, float* output) const {
  if (!batch.has_embedding(row)) return embedding_.Read(batch.tokens[row], output);
  std::copy_n(batch.embeddings[row], hidden_size(), output);
  return {};
}

Status Decoder::Embed(const Batch& batch) {
  const std::span<const int32_t> tokens = batch.tokens;
  workers_.Resume();
  for (size_t row = 0; row < tokens.size(); ++row) {
    CRIA_RETURN_IF_ERROR(ReadEmbedding(batch, row, hidden_.Row(row)));
  }
  workers_.Count(OperatorKind::kEmbedding);
  if (shape_.config.rotated_residual) {
    hidden_.Rotate(tokens.size());
    workers_.Count(OperatorKind::kRotation);
  }
  return per_layer_inputs_ == nullptr ? Status() : per_layer_inputs_->Compute(tokens);
}

Status Decoder::RunLayers(const Batch& batch) {
  size_t rows = batch.tokens.size();
  // The time in which rank 0 tells the others what to compute is not counted.
  workers_.Resume();
  const DecoderLayer& first = layers_.front();
  hidden_.BeginBlock(rows, first.input_layernorm, first.mixer->input());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const DecoderLayer& layer = layers_[i];
    if (layer.is_last_to_store) {
      CRIA_RETURN_IF_ERROR(layer.mixer->StoreLast(placement_, rows));
      rows = KeepLogitRows(*layer.mixer);
    } else {
      CRIA_RETURN_IF_ERROR(layer.mixer->Store(placement_, rows));
    }
    if (rows == 0) return {};
    CRIA_RETURN_IF_ERROR(layer.mixer->Mix(placement_, rows));
    CRIA_RETURN_IF_ERROR(
        hidden_.EndBlock(rows, layer.mixer->output_bias(), layer.attention_output_norm,
                         layer.post_attention_layernorm, &layer.feed_forward->input()));
    CRIA_RETURN_IF_ERROR(layer.feed_forward->Run(rows));
    CRIA_RETURN_IF_ERROR(EndLayer(layer, i + 1 < layers_.size() ? &layers_[i + 1] : nullptr, rows));
  }
  if (mtp_ != nullptr) {
    CRIA_RETURN_IF_ERROR(StoreForGuesses(batch));
    rows = placement_.logit_rows().size();
  }
  head_.Begin(rows);
  return {};
}

Status Decoder::StoreForGuesses(const Batch& batch) {
  const size_t rows = batch.tokens.size();
  for (size_t row = 0; row < rows; ++row) {
    CRIA_RETURN_IF_ERROR(ReadEmbedding(batch, row, mtp_->Embedding(row)));
  }
  workers_.Count(OperatorKind::kEmbedding);
  CRIA_RETURN_IF_ERROR(mtp_->Store(placement_, head_.norm(), rows));
  hidden_.Keep(placement_.logit_rows());
  return {};
}

Status Decoder::Guess(const GuessRequest& request, const GuessCallback& choose) {
  if (mtp_ == nullptr) return TokenModel::Guess(request, choose);
  if (request.position == 0 || request.max_tokens == 0) return {};
  const auto lock = workers_.Lock();
  const auto truncate = [&]() -> Status {
    CRIA_RETURN_IF_ERROR(sequences_.Truncate(request.sequence, request.position));
    return CarryOutLocked();
  };
  CRIA_RETURN_IF_ERROR(truncate());
  CRIA_RETURN_IF_ERROR(sequences_.Extend(request.sequence, request.position + request.max_tokens));
  CRIA_RETURN_IF_ERROR(CarryOutLocked());
  Status run = RunGuesses(request, choose);
  CRIA_RETURN_IF_ERROR(truncate());
  return run;
}

Status Decoder::RunGuesses(const GuessRequest& request, const GuessCallback& choose) {
  const KvPages& pages = sequences_.pages();
  const float* previous = mtp_->LastHidden(sequences_.states()->Run(request.sequence));
  int32_t token = request.token;
  for (size_t i = 0; i < request.max_tokens; ++i) {
    placement_.Clear();
    placement_.Add({.sequence = request.sequence,
                    .first_position = request.position + i,
                    .num_tokens = 1,
                    .num_logits = 1},
                   pages.shift(request.sequence));
    for (size_t group = 0; group < pages.num_groups(); ++group) {
      placement_.Place(group, pages.Table(request.sequence, group));
    }
    CRIA_RETURN_IF_ERROR(embedding_.Read(token, mtp_->Embedding(0)));
    CRIA_ASSIGN_OR_RETURN(const std::span<float> logits, mtp_->Guess(placement_, previous));
    token = choose(logits);
    if (token < 0) return {};
    previous = mtp_->LastOutput();
  }
  return {};
}

Status Decoder::EndLayer(const DecoderLayer& layer, const DecoderLayer* next, size_t rows) const {
  const float* const next_norm = next == nullptr ? nullptr : next->input_layernorm;
  const Projection* const next_input = next == nullptr ? nullptr : &next->mixer->input();
  const float* const bias = layer.feed_forward->output_bias();
  if (layer.per_layer == nullptr) {
    return hidden_.EndBlock(rows, bias, layer.mlp_output_norm, next_norm, next_input,
                            layer.layer_scalar);
  }
  CRIA_RETURN_IF_ERROR(
      hidden_.EndBlock(rows, bias, layer.mlp_output_norm, nullptr, &layer.per_layer->input()));
  CRIA_RETURN_IF_ERROR(layer.per_layer->Run(rows));
  return hidden_.EndBlock(rows, nullptr, layer.per_layer_output_norm, next_norm, next_input,
                          layer.layer_scalar);
}

size_t Decoder::KeepLogitRows(TokenMixer& mixer) {
  const std::span<const uint32_t> rows = placement_.logit_rows();
  mixer.Keep(rows);
  hidden_.Keep(rows);
  if (per_layer_inputs_ != nullptr) per_layer_inputs_->Keep(rows);
  placement_.KeepLogitRows();
  return rows.size();
}

Result<std::span<float>> Decoder::Logits(size_t row) { return head_.Logits(row); }

Status Decoder::CarryOutMoves() {
  const auto lock = workers_.Lock();
  return CarryOutLocked();
}

Status Decoder::CarryOutLocked() {
  StoreMoves moves = {.pages = sequences_.pages().moves()};
  if (const RecurrentStates* const states = sequences_.states(); states != nullptr) {
    moves.states = states->copies();
  }
  Status told;
  if (!moves.empty()) {
    told = ranks_.BeginMove(moves);
    if (told) CarryOutLocked(moves);
  }
  sequences_.ClearMoves();
  return told;
}

void Decoder::CarryOutLocked(const StoreMoves& moves) const {
  cache_.Move(moves.pages, workers_.PoolFor(1));
  states_.Copy(moves.states, workers_.PoolFor(1));
}

void Decoder::CarryOut(const StoreMoves& moves) const {
  const auto lock = workers_.Lock();
  CarryOutLocked(moves);
}

Status Decoder::ExchangeKvRows(const KvRows& rows, KvDirection direction) {
  const auto lock = workers_.Lock();
  return ranks_.ExchangeKvRows(rows, cache_.layer(rows.layer).view, direction);
}

Status Decoder::ExchangeState(const KeptState& state, std::span<float> scratch,
                              KvDirection direction) {
  const auto lock = workers_.Lock();
  return ranks_.ExchangeState(state, states_.layer(state.layer).size, StateAfter(state, scratch),
                              direction);
}

}  // namespace cria
