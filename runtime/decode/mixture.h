#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/arena.h"
#include "decode/feed_forward.h"
#include "decode/layer_block.h"
#include "ops/products/tiled_product.h"

namespace cria {

// The slots of one expert, which follow one another. A slot is a row of an expert that the row
// chose.
struct ExpertGroup {
  uint32_t expert;
  uint32_t first_slot;
  uint32_t num_slots;
};

// A feed-forward whose rows choose among experts (Shazeer et al. 2017; Fedus et al. 2022), to whose
// outputs a dense one may be added for all rows. Rows that chose the same expert are multiplied
// together, so that its weights are read once for all of them, but no row's result depends on the
// others.
class MixtureOfExperts final : public FeedForward {
 public:
  // The buffers, which all layers share; they are empty unless the model has experts. There are
  // chunk * num_experts_per_tok slots.
  struct Regions {
    ArenaLayout::RegionId scores;         // f32 [chunk][num_experts]
    ArenaLayout::RegionId choices;        // uint32_t [chunk][num_experts_per_tok]
    ArenaLayout::RegionId weights;        // f32, the same shape.
    ArenaLayout::RegionId slots;          // uint32_t, the same shape: the slot of each choice.
    ArenaLayout::RegionId slot_rows;      // uint32_t [slots]: the row of each.
    ArenaLayout::RegionId groups;         // ExpertGroup [num_experts]
    ArenaLayout::RegionId row_groups;     // ops::RowGroup [num_experts]
    ArenaLayout::RegionId quantized;      // int8 [slots][widest input of an expert]
    ArenaLayout::RegionId quantizations;  // RowQuantization [slots + extra]
    ArenaLayout::RegionId gate_up;        // f32 [slots][2 * moe_intermediate_size]
    ArenaLayout::RegionId output;         // f32 [slots][hidden_size]
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);
  struct Buffers {
    Buffers(const Regions& regions, const ArenaView& arena);

    float* scores;
    uint32_t* choices;
    float* weights;
    uint32_t* slots;
    uint32_t* slot_rows;
    ExpertGroup* groups;
    ops::RowGroup* row_groups;
    xnn::QuantizedRows quantized;
    float* gate_up;
    float* output;
  };

  // `shared_gate_up` is the region of DenseFeedForward. All must outlive the object.
  MixtureOfExperts(const LayerContext& context, const Buffers& buffers, float* shared_gate_up);

  void AddPlaces(TensorPlaces& places) override;
  const Projection& input() const override { return gate_up_proj_; }
  const float* output_bias() const override { return nullptr; }
  Status Run(size_t rows) override;
  Status RunProducts(size_t rows) override;

  // The parts of Run, between which the rows may become others: each row chooses its experts; these
  // multiply the rows, which are ready for input().
  void Choose(size_t rows);
  Status RunChosen(size_t rows);

 private:
  // Lets each row choose its experts.
  void Route(size_t rows) const;
  // Gives each choice of the rows a slot, those of one expert behind one another.
  void GroupChoices(size_t rows);
  // Copies the rows into their slots, and begins to read the chosen experts.
  void FillSlots(size_t rows) const;
  Status MultiplyExperts(const Projection& experts, size_t rows, OperatorKind kind) const;
  void ActivateSlots(size_t rows) const;
  Status RunShared(size_t rows);
  void AddExperts(size_t rows) const;

  const Buffers buffers_;
  const GatedAct gated_act_;
  std::optional<DenseFeedForward> shared_;
  // These have the matrices of all experts, one behind another.
  Projection gate_up_proj_;
  Projection down_proj_;
  const float* router_ = nullptr;              // [num_experts, hidden_size]
  const float* router_bias_ = nullptr;         // [num_experts], or null if there is none.
  const float* gate_up_bias_ = nullptr;        // [num_experts][2 * moe_intermediate_size], or null.
  const float* down_bias_ = nullptr;           // [num_experts][hidden_size], or null.
  const float* shared_expert_gate_ = nullptr;  // [hidden_size], or null if there is none.
  size_t num_groups_ = 0;                      // Experts that rows of the batch chose.
};

}  // namespace cria
