#include "decode/mixture.h"

#include <algorithm>

#include "core/numeric.h"
#include "core/platform.h"
#include "decode/layer_steps.h"
#include "ops/router.h"
#include "ops/swiglu.h"
#include "ops/vector.h"

namespace cria {
namespace {

// A thread multiplies so many rows, or one row by so many of the router's rows.
constexpr size_t kRoutedRows = 8;
constexpr size_t kRoutedExperts = 16;

}  // namespace

MixtureOfExperts::Regions MixtureOfExperts::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  constexpr Lifetime kLifetime = {kGateUpStep, kNextNormStep};
  const ModelConfig& config = shape.config;
  const uint64_t chunk = shape.options.chunk_tokens;
  const uint64_t experts = config.num_experts;
  const uint64_t slots = chunk * config.num_experts_per_tok;
  const uint64_t slack = experts == 0 ? 0 : xnn::kReadableSlackBytes;
  const uint64_t extra = experts == 0 ? 0 : xnn::kExtraRowQuantizations;
  const size_t width = config.moe_intermediate_size;
  const size_t stride = QuantizedRowStride(std::max<size_t>(config.hidden_size, width));
  const auto add = [&](const char* name, uint64_t bytes) {
    return layout.Add(name, bytes, kLifetime);
  };
  Regions regions;
  regions.scores = add("scores of experts", chunk * experts * sizeof(float));
  regions.choices = add("chosen experts", slots * sizeof(uint32_t));
  regions.weights = add("weights of experts", slots * sizeof(float));
  regions.slots = add("places of experts", slots * sizeof(uint32_t));
  regions.slot_rows = add("rows of experts", slots * sizeof(uint32_t));
  regions.groups = add("groups of experts", experts * sizeof(ExpertGroup));
  regions.row_groups = add("products of experts", experts * sizeof(ops::RowGroup));
  regions.quantized = add("experts' quantized activations", slots * stride + slack);
  regions.quantizations =
      add("experts' quantization parameters", (slots + extra) * sizeof(RowQuantization));
  regions.gate_up = add("experts' gate and up rows", slots * 2 * width * sizeof(float) + slack);
  regions.output = add("experts' output rows", slots * config.hidden_size * sizeof(float) + slack);
  return regions;
}

MixtureOfExperts::Buffers::Buffers(const Regions& regions, const ArenaView& arena)
    : scores(arena.Pointer<float>(regions.scores)),
      choices(arena.Pointer<uint32_t>(regions.choices)),
      weights(arena.Pointer<float>(regions.weights)),
      slots(arena.Pointer<uint32_t>(regions.slots)),
      slot_rows(arena.Pointer<uint32_t>(regions.slot_rows)),
      groups(arena.Pointer<ExpertGroup>(regions.groups)),
      row_groups(arena.Pointer<ops::RowGroup>(regions.row_groups)),
      quantized{arena.Pointer<int8_t>(regions.quantized),
                arena.Pointer<RowQuantization>(regions.quantizations)},
      gate_up(arena.Pointer<float>(regions.gate_up)),
      output(arena.Pointer<float>(regions.output)) {}

MixtureOfExperts::MixtureOfExperts(const LayerContext& context, const Buffers& buffers,
                                   float* shared_gate_up)
    : FeedForward(context), buffers_(buffers), gated_act_(GatedActOf(context.config.hidden_act)) {
  const size_t shared_size = context.config.shared_expert_intermediate_size;
  if (shared_size == 0) return;
  shared_.emplace(context, shared_size, shared_gate_up,
                  DenseFeedForward::Roles{.gate_up_proj = TensorRole::kSharedExpertGateUpProj,
                                          .down_proj = TensorRole::kSharedExpertDownProj});
}

void MixtureOfExperts::AddPlaces(TensorPlaces& places) {
  const size_t hidden = config_.hidden_size;
  const size_t experts = config_.num_experts;
  const size_t width = config_.moe_intermediate_size;
  places.Add(
      {.role = TensorRole::kRouter, .vector = &router_, .outputs = experts, .inputs = hidden});
  places.AddVector(TensorRole::kRouterBias, router_bias_, experts);
  places.AddVector(TensorRole::kExpertsGateUpBias, gate_up_bias_, experts * 2 * width);
  places.AddVector(TensorRole::kExpertsDownBias, down_bias_, experts * hidden);
  // The rows are collected where the output will be, which is written later.
  places.Add({.role = TensorRole::kExpertsGateUpProj,
              .product = &gate_up_proj_,
              .outputs = experts * 2 * width,
              .inputs = hidden,
              .input = buffers_.output,
              .input_stride = hidden,
              .quantized = buffers_.quantized,
              .output = buffers_.gate_up});
  places.Add({.role = TensorRole::kExpertsDownProj,
              .product = &down_proj_,
              .outputs = experts * hidden,
              .inputs = width,
              .input = buffers_.gate_up,
              .input_stride = 2 * width,
              .quantized = buffers_.quantized,
              .output = buffers_.output});
  if (!shared_) return;
  shared_->AddPlaces(places);
  places.AddVector(TensorRole::kSharedExpertGate, shared_expert_gate_, hidden);
}

Status MixtureOfExperts::Run(size_t rows) {
  Choose(rows);
  return RunChosen(rows);
}

void MixtureOfExperts::Choose(size_t rows) {
  Route(rows);
  GroupChoices(rows);
}

Status MixtureOfExperts::RunChosen(size_t rows) {
  FillSlots(rows);
  workers_.Count(OperatorKind::kRouting);
  CRIA_RETURN_IF_ERROR(MultiplyExperts(gate_up_proj_, rows, OperatorKind::kGateUpProj));
  ActivateSlots(rows);
  CRIA_RETURN_IF_ERROR(MultiplyExperts(down_proj_, rows, OperatorKind::kDownProj));
  if (shared_) CRIA_RETURN_IF_ERROR(RunShared(rows));
  AddExperts(rows);
  return {};
}

Status MixtureOfExperts::RunProducts(size_t rows) {
  // Consecutive choices, so that rows have as many experts as there are.
  for (size_t i = 0; i < rows * config_.num_experts_per_tok; ++i) {
    buffers_.choices[i] = static_cast<uint32_t>(i % config_.num_experts);
  }
  GroupChoices(rows);
  CRIA_RETURN_IF_ERROR(MultiplyExperts(gate_up_proj_, rows, OperatorKind::kGateUpProj));
  CRIA_RETURN_IF_ERROR(MultiplyExperts(down_proj_, rows, OperatorKind::kDownProj));
  return shared_ ? shared_->RunProducts(rows) : Status();
}

Status MixtureOfExperts::RunShared(size_t rows) {
  // The rows are quantized as the experts read them.
  if (shared_->input().input_form() != gate_up_proj_.input_form()) {
    const size_t hidden = config_.hidden_size;
    workers_.ForEachRow(rows, hidden, [&](size_t row) {
      hidden_.MakeReady(shared_->input(), hidden_.block_input() + row * hidden, row);
    });
  }
  return shared_->Run(rows);
}

void MixtureOfExperts::Route(size_t rows) const {
  const size_t hidden = config_.hidden_size;
  const size_t num_experts = config_.num_experts;
  const auto score = [&](size_t first_row, size_t num_rows, size_t expert, size_t count) {
    ops::RouterScores({hidden_.block_input() + first_row * hidden, hidden, num_rows},
                      router_ + expert * hidden, count, hidden,
                      buffers_.scores + first_row * num_experts + expert, num_experts);
  };
  if (rows * num_experts * hidden < kMinSharedElements) {
    score(0, rows, 0, num_experts);
  } else if (rows < kRoutedRows) {
    workers_.PoolFor(rows).ParallelFor(
        DivideRoundingUp(num_experts, kRoutedExperts), [&](size_t task) {
          const size_t first = task * kRoutedExperts;
          score(0, rows, first, std::min(kRoutedExperts, num_experts - first));
        });
  } else {
    workers_.PoolFor(rows).ParallelFor(DivideRoundingUp(rows, kRoutedRows), [&](size_t task) {
      const size_t first = task * kRoutedRows;
      score(first, std::min(kRoutedRows, rows - first), 0, num_experts);
    });
  }
  const ops::ExpertChoice choice = {.normalize = config_.norm_topk_prob,
                                    .has_sigmoids = config_.scoring_func == ScoringFunc::kSigmoid,
                                    .bias = config_.router_bias ? nullptr : router_bias_};
  const size_t chosen = config_.num_experts_per_tok;
  workers_.ForEachRow(rows, num_experts, [&](size_t row) {
    if (config_.router_bias) {
      ops::Add(router_bias_, num_experts, buffers_.scores + row * num_experts);
    }
    ops::ChooseExperts({buffers_.scores + row * num_experts, num_experts}, choice,
                       {buffers_.choices + row * chosen, chosen},
                       {buffers_.weights + row * chosen, chosen});
  });
}

void MixtureOfExperts::GroupChoices(size_t rows) {
  const size_t num_choices = rows * config_.num_experts_per_tok;
  const std::span<ExpertGroup> groups(buffers_.groups, config_.num_experts);
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = {static_cast<uint32_t>(i), 0, 0};
  for (size_t i = 0; i < num_choices; ++i) ++groups[buffers_.choices[i]].num_slots;
  uint32_t next = 0;
  for (ExpertGroup& group : groups) {
    group.first_slot = next;
    next += group.num_slots;
    group.num_slots = 0;
  }
  for (size_t i = 0; i < num_choices; ++i) {
    ExpertGroup& group = groups[buffers_.choices[i]];
    const uint32_t slot = group.first_slot + group.num_slots++;
    buffers_.slots[i] = slot;
    buffers_.slot_rows[slot] = static_cast<uint32_t>(i / config_.num_experts_per_tok);
  }
  const auto unused = std::ranges::remove(groups, 0u, &ExpertGroup::num_slots);
  num_groups_ = groups.size() - unused.size();
}

void MixtureOfExperts::FillSlots(size_t rows) const {
  const size_t num_experts = config_.num_experts;
  for (const ExpertGroup& group : std::span(buffers_.groups, num_groups_)) {
    platform::BeginToRead(gate_up_proj_.Part(group.expert, num_experts));
    platform::BeginToRead(down_proj_.Part(group.expert, num_experts));
  }
  const size_t hidden = config_.hidden_size;
  const size_t stride = QuantizedRowStride(hidden);
  const bool is_f32 = gate_up_proj_.input_form() == xnn::InputForm::kF32;
  workers_.ForEachRow(rows * config_.num_experts_per_tok, hidden, [&](size_t slot) {
    const size_t row = buffers_.slot_rows[slot];
    if (is_f32) {
      std::copy_n(hidden_.block_input() + row * hidden, hidden, buffers_.output + slot * hidden);
    } else {
      std::copy_n(hidden_.quantized().values + row * stride, stride,
                  buffers_.quantized.values + slot * stride);
      buffers_.quantized.quantizations[slot] = hidden_.quantized().quantizations[row];
    }
  });
}

Status MixtureOfExperts::MultiplyExperts(const Projection& experts, size_t rows,
                                         OperatorKind kind) const {
  for (size_t i = 0; i < num_groups_; ++i) {
    const ExpertGroup& group = buffers_.groups[i];
    buffers_.row_groups[i] = {.packed = experts.Part(group.expert, config_.num_experts).data(),
                              .first_row = group.first_slot,
                              .num_rows = group.num_slots};
  }
  return experts.RunGroups({buffers_.row_groups, num_groups_}, rows, kind, workers_);
}

void MixtureOfExperts::ActivateSlots(size_t rows) const {
  const size_t width = config_.moe_intermediate_size;
  workers_.ForEachRow(rows * config_.num_experts_per_tok, 2 * width, [&](size_t choice) {
    const size_t slot = buffers_.slots[choice];
    // The result overwrites the gate, from where the down projection reads it.
    float* const gate = buffers_.gate_up + slot * 2 * width;
    if (gate_up_bias_ != nullptr) {
      ops::Add(gate_up_bias_ + buffers_.choices[choice] * 2 * width, 2 * width, gate);
    }
    if (config_.swiglu_limit != 0.0f) {
      ops::ClampedSwiGlu(gate, gate + width, {config_.swiglu_alpha, config_.swiglu_limit}, width,
                         gate);
    } else {
      gated_act_(gate, gate + width, width, gate);
    }
    down_proj_.MakeReady(gate, buffers_.quantized, slot);
  });
  workers_.Count(OperatorKind::kActivation);
}

void MixtureOfExperts::AddExperts(size_t rows) const {
  const size_t hidden = config_.hidden_size;
  const size_t chosen = config_.num_experts_per_tok;
  // The outputs of all ranks are added up, each with this part of the biases.
  const float bias_share = 1.0f / static_cast<float>(ranks_.num_ranks());
  workers_.ForEachRow(rows, chosen * hidden, [&](size_t row) {
    float* const sum = hidden_.block_output() + row * hidden;
    if (!shared_) {
      std::fill_n(sum, hidden, 0.0f);
    } else if (shared_expert_gate_ != nullptr) {
      const float weight = ops::SharedExpertWeight(hidden_.block_input() + row * hidden,
                                                   shared_expert_gate_, hidden);
      for (size_t i = 0; i < hidden; ++i) sum[i] *= weight;
    }
    for (size_t i = row * chosen; i < (row + 1) * chosen; ++i) {
      ops::AddScaled(buffers_.output + buffers_.slots[i] * hidden, buffers_.weights[i], hidden,
                     sum);
      if (down_bias_ == nullptr) continue;
      ops::AddScaled(down_bias_ + buffers_.choices[i] * hidden, buffers_.weights[i] * bias_share,
                     hidden, sum);
    }
  });
  workers_.Count(OperatorKind::kRouting);
}

}  // namespace cria
