#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "decode/decoder_options.h"
#include "decode/rope_tables.h"
#include "decode/sequence_shift.h"
#include "decode/sequence_store.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Rope's turns by the shifts of sequences, which are computed when a shift changes.
class RopeTurns {
 public:
  struct Regions {
    ArenaLayout::RegionId shifts;  // SequenceShift [sequences]
    // f32 [sequences][rope tables][cosines, then sines][rotary_channels / 2]
    ArenaLayout::RegionId turns;
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);

  // `ropes` must outlive the object.
  RopeTurns(const DecoderShape& shape, const Regions& regions, const ArenaView& arena,
            const RopeTables& ropes);

  void Set(SequenceId sequence, const SequenceShift& shift);
  // The shift in layers with this rope; layers without rope have none.
  ops::KeyShift Of(SequenceId sequence, const RopeTableView& rope) const;

 private:
  const RopeTables& ropes_;
  const size_t turn_floats_;  // The numbers of one sequence.
  const std::span<SequenceShift> shifts_;
  float* const turns_;
};

}  // namespace cria
