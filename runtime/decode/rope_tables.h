#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/arena.h"
#include "decode/decoder_options.h"
#include "model/config.h"

namespace cria {

// The cosines and sines by which the layers of one kind rotate queries and keys.
struct RopeTableView {
  // [positions][rotary_channels / 2] each, shared with other layers; null without rope.
  const float* cosines = nullptr;
  const float* sines = nullptr;
  std::span<const double> inverse_frequencies = {};  // [rotary_channels / 2]
  size_t turn_offset = 0;  // Where the table's turn is in those of RopeTables::FillTurns.
};

// The rope tables of all kinds of layers, filled when a decoder is created.
class RopeTables {
 public:
  struct Regions {
    // f32 [longest sequence, at least a page][rotary_channels / 2] of each table, one behind
    // another.
    ArenaLayout::RegionId cosines;
    ArenaLayout::RegionId sines;
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);

  RopeTables(const DecoderShape& shape, const Regions& regions, const ArenaView& arena);

  RopeTableView Of(const LayerKind& kind) const;

  // How many floats FillTurns writes.
  static size_t TurnFloats(const ModelConfig& config);
  // Writes the cosines and then the sines of a turn by `distance` positions for each table.
  void FillTurns(size_t distance, float* turns) const;

 private:
  std::vector<LayerKind> kinds_;  // The kind of each table.
  std::vector<std::vector<double>> inverse_frequencies_;
  std::vector<RopeTableView> tables_;
};

}  // namespace cria
