// A layer's feed-forward. decoder.cc has what is around the layers.

#include "decode/decoder.h"
#include "ops/geglu.h"
#include "ops/swiglu.h"
#include "ops/vector.h"

namespace cria {

Decoder::GatedAct Decoder::GatedActOf(HiddenAct act) {
  switch (act) {
    case HiddenAct::kSilu:
      break;
    case HiddenAct::kGeluTanh:
      return ops::GeGluTanh;
    case HiddenAct::kGelu:
      return ops::GeGlu;
  }
  return ops::SwiGlu;
}

Status Decoder::FeedForwardBlock(Layer& layer, size_t rows, const Layer* next) {
  CRIA_RETURN_IF_ERROR(layer.is_mixture ? Mixture(layer, rows) : DenseFeedForward(layer, rows));
  CRIA_RETURN_IF_ERROR(SumOverRanks(rows));
  ForEachRow(rows, config_.hidden_size, [&](size_t row) {
    const float* const hidden = AddProjected(row, layer.down_bias, layer.mlp_output_norm);
    if (next != nullptr) Normalize(hidden, row, next->input_layernorm, next->qkv_proj);
  });
  Count(OperatorKind::kNorm);
  return {};
}

Status Decoder::DenseFeedForward(const Layer& layer, size_t rows) {
  CRIA_RETURN_IF_ERROR(Multiply(layer.gate_up_proj, rows, OperatorKind::kGateUpProj));
  ActivateRows(layer, rows);
  return Multiply(layer.down_proj, rows, OperatorKind::kDownProj);
}

void Decoder::ActivateRows(const Layer& layer, size_t rows) {
  const size_t intermediate = layer.intermediate_size;
  ForEachRow(rows, 2 * intermediate, [&](size_t row) {
    // The result overwrites the gate, from where the down projection reads it.
    float* const gate = gate_up_ + row * 2 * intermediate;
    if (layer.gate_up_bias != nullptr) ops::Add(layer.gate_up_bias, 2 * intermediate, gate);
    gated_act_(gate, gate + intermediate, intermediate, gate);
    MakeReady(layer.down_proj, gate, row);
  });
  Count(OperatorKind::kActivation);
}

}  // namespace cria
