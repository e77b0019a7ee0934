#include "decode/hidden_state.h"

#include <algorithm>

#include "decode/layer_steps.h"
#include "ops/hadamard.h"
#include "ops/rms_norm.h"
#include "ops/vector.h"

namespace cria {

HiddenState::Regions HiddenState::Plan(const DecoderShape& shape, size_t widest_input,
                                       ArenaLayout& layout) {
  const uint64_t chunk = shape.options.chunk_tokens;
  const uint64_t bytes = chunk * shape.config.hidden_size * sizeof(float);
  // XNNPACK may read a few bytes after the end of every input.
  const size_t slack = xnn::kReadableSlackBytes;
  Regions regions;
  // Without norms before them, products read the hidden state, as those for per-layer inputs do.
  const bool is_read =
      !shape.config.has_norms_before() || shape.config.hidden_size_per_layer_input != 0;
  regions.hidden = layout.Add("hidden state", bytes + (is_read ? slack : 0), kWholeLife);
  regions.quantized = layout.Add("quantized activations",
                                 chunk * QuantizedRowStride(widest_input) + slack, kWholeLife);
  regions.quantizations =
      layout.Add("quantization parameters",
                 (chunk + xnn::kExtraRowQuantizations) * sizeof(RowQuantization), kWholeLife);
  regions.normed = layout.Add("normalized rows", bytes + slack, kWholeLife);
  regions.projected = layout.Add("projected rows", bytes, {kOutputStep, kNextNormStep});
  return regions;
}

HiddenState::HiddenState(const DecoderShape& shape, const Regions& regions, const ArenaView& arena,
                         const Workers& workers, RankMath& ranks, bool is_rotated)
    : size_(shape.config.hidden_size),
      epsilon_(shape.config.rms_norm_eps),
      has_norms_before_(shape.config.has_norms_before()),
      is_rotated_(is_rotated),
      workers_(workers),
      ranks_(ranks),
      hidden_(arena.Pointer<float>(regions.hidden)),
      normed_(arena.Pointer<float>(regions.normed)),
      projected_(arena.Pointer<float>(regions.projected)),
      quantized_{arena.Pointer<int8_t>(regions.quantized),
                 arena.Pointer<RowQuantization>(regions.quantizations)} {}

void HiddenState::Rotate(size_t rows) const {
  workers_.ForEachRow(rows, size_, [&](size_t row) { ops::HadamardTransform(Row(row), size_); });
}

void HiddenState::NormalizeWithoutWeights(size_t rows) const {
  workers_.ForEachRow(rows, size_, [&](size_t row) {
    ops::RmsNorm(Row(row), nullptr, size_, epsilon_, normed_ + row * size_);
  });
}

void HiddenState::BeginBlock(size_t rows, const float* norm, const Projection& next) const {
  workers_.ForEachRow(rows, size_, [&](size_t row) { Normalize(Row(row), row, norm, next); });
  workers_.Count(OperatorKind::kNorm);
}

Status HiddenState::EndBlock(size_t rows, const float* bias, const float* norm,
                             const float* next_norm, const Projection* next,
                             const float* scalar) const {
  CRIA_RETURN_IF_ERROR(ranks_.Sum({projected_, rows * size_}));
  workers_.ForEachRow(rows, size_, [&](size_t row) {
    float* const hidden = AddOutput(row, bias, norm);
    if (scalar != nullptr) {
      for (size_t i = 0; i < size_; ++i) hidden[i] *= *scalar;
    }
    if (next != nullptr) Normalize(hidden, row, next_norm, *next);
  });
  workers_.Count(OperatorKind::kNorm);
  return {};
}

void HiddenState::Keep(std::span<const uint32_t> rows) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != i) std::copy_n(Row(rows[i]), size_, Row(i));
  }
}

void HiddenState::Normalize(size_t row, const float* norm) const {
  const float* const hidden = is_rotated_ ? TurnBack(Row(row), row) : Row(row);
  ops::RmsNorm(hidden, norm, size_, epsilon_, normed_ + row * size_);
}

void HiddenState::NormalizeForHead(size_t row, size_t target, const float* norm,
                                   const Projection& next) const {
  const float* const hidden = is_rotated_ ? TurnBack(Row(row), target) : Row(row);
  Normalize(hidden, target, norm, next);
}

void HiddenState::Normalize(const float* input, size_t row, const float* weight,
                            const Projection& next) const {
  if (weight == nullptr) return MakeReady(next, input, row);
  float* const normed = normed_ + row * size_;
  ops::RmsNorm(input, weight, size_, epsilon_, normed);
  MakeReady(next, normed, row);
}

const float* HiddenState::TurnBack(const float* hidden, size_t row) const {
  float* const turned = normed_ + row * size_;
  std::copy_n(hidden, size_, turned);
  ops::HadamardTransform(turned, size_);
  return turned;
}

float* HiddenState::AddOutput(size_t row, const float* bias, const float* norm) const {
  float* const projected = projected_ + row * size_;
  float* const hidden = Row(row);
  if (norm != nullptr) {
    if (bias != nullptr) ops::Add(bias, size_, projected);
    ops::RmsNorm(projected, norm, size_, epsilon_, projected);
    bias = nullptr;
  }
  ops::Add(projected, size_, hidden);
  if (bias != nullptr) ops::Add(bias, size_, hidden);
  return hidden;
}

}  // namespace cria
