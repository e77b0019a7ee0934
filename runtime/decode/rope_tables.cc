#include "decode/rope_tables.h"

#include "model/rope_table.h"

namespace cria {
namespace {

size_t TableElements(const DecoderShape& shape, const LayerKind& kind) {
  return shape.sequence_tokens() * (shape.config.rotary_channels(kind) / 2);
}

}  // namespace

RopeTables::Regions RopeTables::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  uint64_t bytes = 0;
  for (const LayerKind& kind : KindsWithRopeTables(shape.config)) {
    bytes += uint64_t{TableElements(shape, kind)} * sizeof(float);
  }
  Regions regions;
  regions.cosines = layout.Add("rope table: cosines", bytes, kWholeLife);
  regions.sines = layout.Add("rope table: sines", bytes, kWholeLife);
  return regions;
}

RopeTables::RopeTables(const DecoderShape& shape, const Regions& regions, const ArenaView& arena)
    : kinds_(KindsWithRopeTables(shape.config)) {
  auto* const cosines = arena.Pointer<float>(regions.cosines);
  auto* const sines = arena.Pointer<float>(regions.sines);
  size_t offset = 0;
  for (const LayerKind& kind : kinds_) {
    FillRopeTable(shape.config, kind, shape.sequence_tokens(), cosines + offset, sines + offset);
    tables_.push_back({cosines + offset, sines + offset});
    offset += TableElements(shape, kind);
  }
}

RopeTableView RopeTables::Of(const LayerKind& kind) const {
  if (kind.no_rope) return {};
  return tables_[RopeTableOf(kinds_, kind)];
}

}  // namespace cria
