#pragma once

#include <cstddef>
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
};

// The rope tables of all kinds of layers, filled when a decoder is created.
class RopeTables {
 public:
  struct Regions {
    // f32 [longest sequence][rotary_channels / 2] of each table, one behind another.
    ArenaLayout::RegionId cosines;
    ArenaLayout::RegionId sines;
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);

  RopeTables(const DecoderShape& shape, const Regions& regions, const ArenaView& arena);

  RopeTableView Of(const LayerKind& kind) const;

 private:
  std::vector<LayerKind> kinds_;  // The kind of each table.
  std::vector<RopeTableView> tables_;
};

}  // namespace cria
