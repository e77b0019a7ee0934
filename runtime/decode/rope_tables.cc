#include "decode/rope_tables.h"

#include "model/rope_table.h"

namespace cria {
namespace {

size_t TableElements(const DecoderShape& shape) {
  return shape.sequence_tokens() * (shape.config.rotary_channels() / 2);
}

}  // namespace

RopeTables::Regions RopeTables::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const uint64_t bytes =
      KindsWithRopeTables(shape.config).size() * uint64_t{TableElements(shape)} * sizeof(float);
  Regions regions;
  regions.cosines = layout.Add("rope table: cosines", bytes, kWholeLife);
  regions.sines = layout.Add("rope table: sines", bytes, kWholeLife);
  return regions;
}

RopeTables::RopeTables(const DecoderShape& shape, const Regions& regions, const ArenaView& arena)
    : kinds_(KindsWithRopeTables(shape.config)), table_elements_(TableElements(shape)) {
  auto* const cosines = arena.Pointer<float>(regions.cosines);
  auto* const sines = arena.Pointer<float>(regions.sines);
  for (size_t i = 0; i < kinds_.size(); ++i) {
    FillRopeTable(shape.config, kinds_[i], shape.sequence_tokens(), cosines + i * table_elements_,
                  sines + i * table_elements_);
  }
  cosines_ = cosines;
  sines_ = sines;
}

RopeTableView RopeTables::Of(const LayerKind& kind) const {
  if (kind.no_rope) return {};
  const size_t offset = RopeTableOf(kinds_, kind) * table_elements_;
  return {cosines_ + offset, sines_ + offset};
}

}  // namespace cria
