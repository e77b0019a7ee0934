#include "decode/rope_tables.h"

#include <algorithm>

#include "model/rope_table.h"
#include "ops/kv_cache_view.h"

namespace cria {
namespace {

// A page of offsets may begin up to a page before the first position (ops::OffsetPage).
size_t NumPositions(const DecoderShape& shape) {
  return std::max<size_t>(shape.sequence_tokens(), kKvPageTokens);
}

size_t TableElements(const DecoderShape& shape, const LayerKind& kind) {
  return NumPositions(shape) * (shape.config.rotary_channels(kind) / 2);
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
  size_t turn_offset = 0;
  inverse_frequencies_.reserve(kinds_.size());
  tables_.reserve(kinds_.size());
  for (const LayerKind& kind : kinds_) {
    const std::vector<double>& frequencies = inverse_frequencies_.emplace_back(
        RopeInverseFrequencies(shape.config, kind, shape.sequence_tokens()));
    FillRopeTable(frequencies, NumPositions(shape), cosines + offset, sines + offset);
    tables_.push_back({.cosines = cosines + offset,
                       .sines = sines + offset,
                       .inverse_frequencies = frequencies,
                       .turn_offset = turn_offset});
    offset += TableElements(shape, kind);
    turn_offset += 2 * frequencies.size();
  }
}

RopeTableView RopeTables::Of(const LayerKind& kind) const {
  if (kind.no_rope) return {};
  return tables_[RopeTableOf(kinds_, kind)];
}

size_t RopeTables::TurnFloats(const ModelConfig& config) {
  size_t floats = 0;
  for (const LayerKind& kind : KindsWithRopeTables(config)) floats += config.rotary_channels(kind);
  return floats;
}

void RopeTables::FillTurns(size_t distance, float* turns) const {
  for (const RopeTableView& table : tables_) {
    float* const cosines = turns + table.turn_offset;
    FillRopeTurn(table.inverse_frequencies, static_cast<double>(distance), cosines,
                 cosines + table.inverse_frequencies.size());
  }
}

}  // namespace cria
