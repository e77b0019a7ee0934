#include "decode/rope_turns.h"

namespace cria {
namespace {

size_t NumSequences(const DecoderShape& shape) {
  return ShapeOfKvPages(shape.config, shape.options).num_sequences;
}

}  // namespace

RopeTurns::Regions RopeTurns::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const uint64_t sequences = NumSequences(shape);
  Regions regions;
  regions.shifts = layout.Add("shifts of sequences", sequences * sizeof(SequenceShift), kWholeLife);
  regions.turns =
      layout.Add("rope turns of sequences",
                 sequences * RopeTables::TurnFloats(shape.config) * sizeof(float), kWholeLife);
  return regions;
}

RopeTurns::RopeTurns(const DecoderShape& shape, const Regions& regions, const ArenaView& arena,
                     const RopeTables& ropes)
    : ropes_(ropes),
      turn_floats_(RopeTables::TurnFloats(shape.config)),
      shifts_(arena.Pointer<SequenceShift>(regions.shifts), NumSequences(shape)),
      turns_(arena.Pointer<float>(regions.turns)) {}

void RopeTurns::Set(SequenceId sequence, const SequenceShift& shift) {
  SequenceShift& old = shifts_[sequence];
  if (shift.distance != 0 && shift.distance != old.distance) {
    ropes_.FillTurns(shift.distance, turns_ + sequence * turn_floats_);
  }
  old = shift;
}

ops::KeyShift RopeTurns::Of(SequenceId sequence, const RopeTableView& rope) const {
  const SequenceShift& shift = shifts_[sequence];
  if (shift.distance == 0 || rope.cosines == nullptr) return {};
  const float* const turn = turns_ + sequence * turn_floats_ + rope.turn_offset;
  return {.first = shift.first,
          .distance = shift.distance,
          .cosines = turn,
          .sines = turn + rope.inverse_frequencies.size()};
}

}  // namespace cria
