#include "decode/mtp_layer.h"

#include "decode/layer_steps.h"
#include "ops/rms_norm.h"

namespace cria {
namespace {

HiddenState::Regions WithRows(HiddenState::Regions regions, ArenaLayout::RegionId rows) {
  regions.hidden = rows;
  return regions;
}

}  // namespace

MtpLayer::Regions MtpLayer::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const uint64_t chunk = shape.options.has_mtp ? shape.options.chunk_tokens : 0;
  const uint64_t slack = shape.options.has_mtp ? xnn::kReadableSlackBytes : 0;
  const uint64_t row_bytes = shape.config.hidden_size * sizeof(float);
  const uint64_t logits = shape.options.has_mtp ? shape.config.vocab_size * sizeof(float) : 0;
  return {.joined = layout.Add("embeddings and hidden states to guess from",
                               2 * chunk * row_bytes + slack, {kNormStep, kNormStep}),
          .hidden = layout.Add("hidden state of guesses", chunk * row_bytes, kWholeLife),
          .logits = layout.Add("logits of guesses", logits, kWholeLife)};
}

StateSize MtpLayer::SizeOf(const ModelConfig& config) {
  return {.state_elements = config.hidden_size, .row_elements = config.hidden_size};
}

MtpLayer::MtpLayer(const DecoderShape& shape, const Regions& regions,
                   const HiddenState::Regions& model_regions, const ArenaView& arena,
                   const Workers& workers, RankMath& ranks, const HiddenState& model,
                   const StateCache::Layer& states)
    : config_(shape.config),
      size_(config_.hidden_size),
      workers_(workers),
      model_(model),
      states_(states),
      joined_(arena.Pointer<float>(regions.joined)),
      logits_(arena.Pointer<float>(regions.logits)),
      hidden_(shape, WithRows(model_regions, regions.hidden), arena, workers, ranks,
              /*is_rotated=*/false) {}

void MtpLayer::AddHeadPlace(TensorPlaces& places, size_t output_channels) {
  places.Add({.role = TensorRole::kLmHead,
              .product = &lm_head_,
              .outputs = output_channels,
              .inputs = size_,
              .input = hidden_.normed(),
              .input_stride = size_,
              .quantized = hidden_.quantized(),
              .output = logits_});
}

void MtpLayer::AddPlaces(TensorPlaces& places) {
  places.Add({.role = TensorRole::kMtpFc,
              .product = &fc_,
              .outputs = size_,
              .inputs = 2 * size_,
              .input = joined_,
              .input_stride = 2 * size_,
              .quantized = hidden_.quantized(),
              .output = hidden_.Row(0)});
  places.AddVector(TensorRole::kMtpEmbeddingNorm, embedding_norm_, size_);
  places.AddVector(TensorRole::kMtpHiddenNorm, hidden_norm_, size_);
  places.AddVector(TensorRole::kMtpNorm, norm_, size_);
  layer_.AddPlaces(places, size_);
}

void MtpLayer::Join(size_t row, const float* previous) const {
  float* const joined = Embedding(row);
  ops::RmsNorm(joined, embedding_norm_, size_, config_.rms_norm_eps, joined);
  ops::RmsNorm(previous, hidden_norm_, size_, config_.rms_norm_eps, joined + size_);
  hidden_.MakeReady(fc_, joined, row);
}

Status MtpLayer::BeginLayer(size_t rows) {
  workers_.Count(OperatorKind::kNorm);
  CRIA_RETURN_IF_ERROR(fc_.Run(rows, OperatorKind::kMtp, workers_));
  hidden_.BeginBlock(rows, layer_.input_layernorm, layer_.mixer->input());
  return {};
}

Status MtpLayer::Store(const BatchPlacement& placement, const float* last_norm, size_t rows) {
  workers_.ForEachRow(rows, size_, [&](size_t row) { model_.Normalize(row, last_norm); });
  const float* read = model_.normed();
  size_t first = 0;
  for (const StateRun& run : placement.states()) {
    const KeptRows kept = Kept(run);
    BeginKeptRows(kept, run, 0, size_);
    workers_.ForEachRow(run.num_tokens, 2 * size_, [&](size_t row) {
      Join(first + row, row == 0 ? LastHidden(run) : read + (row - 1) * size_);
    });
    MoveKeptRows(kept, run, read, size_, 0, size_);
    read += run.num_tokens * size_;
    first += run.num_tokens;
  }
  CRIA_RETURN_IF_ERROR(BeginLayer(rows));
  return layer_.mixer->StoreLast(placement, rows);
}

Result<std::span<float>> MtpLayer::Guess(const BatchPlacement& placement, const float* previous) {
  workers_.Resume();
  Join(0, previous);
  CRIA_RETURN_IF_ERROR(BeginLayer(1));
  CRIA_RETURN_IF_ERROR(layer_.mixer->Store(placement, 1));
  CRIA_RETURN_IF_ERROR(layer_.mixer->Mix(placement, 1));
  CRIA_RETURN_IF_ERROR(hidden_.EndBlock(1, layer_.mixer->output_bias(), nullptr,
                                        layer_.post_attention_layernorm,
                                        &layer_.feed_forward->input()));
  CRIA_RETURN_IF_ERROR(layer_.feed_forward->Run(1));
  CRIA_RETURN_IF_ERROR(
      hidden_.EndBlock(1, layer_.feed_forward->output_bias(), nullptr, nullptr, nullptr));
  hidden_.NormalizeForHead(0, 0, norm_, lm_head_);
  workers_.Count(OperatorKind::kNorm);
  CRIA_RETURN_IF_ERROR(lm_head_.Run(1, OperatorKind::kLmHead, workers_));
  return std::span(logits_, config_.vocab_size);
}

std::span<float> MtpLayer::StateAfter(size_t place, size_t num_rows) const {
  // Each row that is kept behind the state makes it that of one token later.
  return {states_.State(place) + num_rows * size_, size_};
}

}  // namespace cria
