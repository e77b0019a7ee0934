// The feed-forward of a layer whose rows choose among experts (Shazeer et al. 2017; Fedus et al.
// 2022). Rows that chose the same expert are multiplied together, so that its weights are read once
// for all of them, but no row's result depends on the others.

#include <algorithm>

#include "core/numeric.h"
#include "core/platform.h"
#include "decode/decoder.h"
#include "ops/router.h"

namespace cria {
namespace {

// A thread multiplies so many rows, or one row by so many of the router's rows.
constexpr size_t kRoutedRows = 8;
constexpr size_t kRoutedExperts = 16;

}  // namespace

Status Decoder::Mixture(const Layer& layer, size_t rows) {
  Route(layer, rows);
  GroupChoices(rows);
  FillSlots(layer, rows);
  Count(OperatorKind::kRouting);
  CRIA_RETURN_IF_ERROR(
      MultiplyExperts(layer.experts_gate_up_proj, rows, OperatorKind::kGateUpProj));
  ActivateSlots(layer, rows);
  CRIA_RETURN_IF_ERROR(MultiplyExperts(layer.experts_down_proj, rows, OperatorKind::kDownProj));
  if (layer.intermediate_size != 0) CRIA_RETURN_IF_ERROR(SharedExpert(layer, rows));
  AddExperts(layer, rows);
  return {};
}

Status Decoder::SharedExpert(const Layer& layer, size_t rows) {
  // The rows are quantized as the experts read them.
  if (layer.gate_up_proj.linear->input_form() != layer.experts_gate_up_proj.linear->input_form()) {
    const size_t hidden = config_.hidden_size;
    ForEachRow(rows, hidden, [&](size_t row) {
      MakeReady(layer.gate_up_proj, FeedForwardRows() + row * hidden, row);
    });
  }
  return DenseFeedForward(layer, rows);
}

void Decoder::Route(const Layer& layer, size_t rows) {
  const size_t hidden = config_.hidden_size;
  const size_t num_experts = config_.num_experts;
  const auto score = [&](size_t first_row, size_t num_rows, size_t expert, size_t count) {
    ops::RouterScores({FeedForwardRows() + first_row * hidden, hidden, num_rows},
                      layer.router + expert * hidden, count, hidden,
                      experts_.scores + first_row * num_experts + expert, num_experts);
  };
  if (rows * num_experts * hidden < kMinSharedElements) {
    score(0, rows, 0, num_experts);
  } else if (rows < kRoutedRows) {
    PoolFor(rows).ParallelFor(DivideRoundingUp(num_experts, kRoutedExperts), [&](size_t task) {
      const size_t first = task * kRoutedExperts;
      score(0, rows, first, std::min(kRoutedExperts, num_experts - first));
    });
  } else {
    PoolFor(rows).ParallelFor(DivideRoundingUp(rows, kRoutedRows), [&](size_t task) {
      const size_t first = task * kRoutedRows;
      score(first, std::min(kRoutedRows, rows - first), 0, num_experts);
    });
  }
  const size_t chosen = config_.num_experts_per_tok;
  ForEachRow(rows, num_experts, [&](size_t row) {
    ops::ChooseExperts({experts_.scores + row * num_experts, num_experts}, config_.norm_topk_prob,
                       {experts_.choices + row * chosen, chosen},
                       {experts_.weights + row * chosen, chosen});
  });
}

void Decoder::GroupChoices(size_t rows) {
  const size_t num_choices = rows * config_.num_experts_per_tok;
  const std::span<ExpertGroup> groups(experts_.groups, config_.num_experts);
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = {static_cast<uint32_t>(i), 0, 0};
  for (size_t i = 0; i < num_choices; ++i) ++groups[experts_.choices[i]].num_slots;
  uint32_t next = 0;
  for (ExpertGroup& group : groups) {
    group.first_slot = next;
    next += group.num_slots;
    group.num_slots = 0;
  }
  for (size_t i = 0; i < num_choices; ++i) {
    ExpertGroup& group = groups[experts_.choices[i]];
    const uint32_t slot = group.first_slot + group.num_slots++;
    experts_.slots[i] = slot;
    experts_.slot_rows[slot] = static_cast<uint32_t>(i / config_.num_experts_per_tok);
  }
  const auto unused = std::ranges::remove(groups, 0u, &ExpertGroup::num_slots);
  num_groups_ = groups.size() - unused.size();
}

void Decoder::FillSlots(const Layer& layer, size_t rows) {
  for (const ExpertGroup& group : std::span(experts_.groups, num_groups_)) {
    platform::BeginToRead(PartOf(layer.experts_gate_up_proj, group.expert));
    platform::BeginToRead(PartOf(layer.experts_down_proj, group.expert));
  }
  const size_t hidden = config_.hidden_size;
  const size_t stride = QuantizedRowStride(hidden);
  const bool is_f32 = layer.experts_gate_up_proj.linear->input_form() == xnn::InputForm::kF32;
  ForEachRow(rows * config_.num_experts_per_tok, hidden, [&](size_t slot) {
    const size_t row = experts_.slot_rows[slot];
    if (is_f32) {
      std::copy_n(FeedForwardRows() + row * hidden, hidden, experts_.output + slot * hidden);
    } else {
      std::copy_n(quantized_.values + row * stride, stride,
                  experts_.quantized.values + slot * stride);
      experts_.quantized.quantizations[slot] = quantized_.quantizations[row];
    }
  });
}

Status Decoder::MultiplyExperts(const Projection& experts, size_t rows, OperatorKind kind) {
  for (size_t i = 0; i < num_groups_; ++i) {
    const ExpertGroup& group = experts_.groups[i];
    experts_.row_groups[i] = {.packed = PartOf(experts, group.expert).data(),
                              .first_row = group.first_slot,
                              .num_rows = group.num_slots};
  }
  const Status product =
      experts.linear->RunGroups({experts_.row_groups, num_groups_}, PoolFor(rows));
  Count(kind);
  return product;
}

void Decoder::ActivateSlots(const Layer& layer, size_t rows) {
  const size_t width = config_.moe_intermediate_size;
  ForEachRow(rows * config_.num_experts_per_tok, 2 * width, [&](size_t slot) {
    // The result overwrites the gate, from where the down projection reads it.
    float* const gate = experts_.gate_up + slot * 2 * width;
    gated_act_(gate, gate + width, width, gate);
    layer.experts_down_proj.linear->Quantize(gate, experts_.quantized, slot);
  });
  Count(OperatorKind::kActivation);
}

void Decoder::AddExperts(const Layer& layer, size_t rows) {
  const size_t hidden = config_.hidden_size;
  const size_t chosen = config_.num_experts_per_tok;
  ForEachRow(rows, chosen * hidden, [&](size_t row) {
    float* const sum = projected_ + row * hidden;
    if (layer.intermediate_size == 0) {
      std::fill_n(sum, hidden, 0.0f);
    } else if (layer.shared_expert_gate != nullptr) {
      const float weight = ops::SharedExpertWeight(FeedForwardRows() + row * hidden,
                                                   layer.shared_expert_gate, hidden);
      for (size_t i = 0; i < hidden; ++i) sum[i] *= weight;
    }
    for (size_t i = row * chosen; i < (row + 1) * chosen; ++i) {
      ops::AddScaled(experts_.output + experts_.slots[i] * hidden, experts_.weights[i], hidden,
                     sum);
    }
  });
  Count(OperatorKind::kRouting);
}

}  // namespace cria
