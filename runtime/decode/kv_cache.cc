#include "decode/kv_cache.h"

#include <utility>

#include "decode/key_offsets.h"
#include "model/rope_table.h"
#include "ops/kv_cache_shift.h"

namespace cria {
namespace {

// Whether the layer has keys and values of its own.
bool StoresKeys(const LayerKind& kind) { return kind.has_attention() && kind.stores_tokens(); }

// Places for the turned pairs of all heads of a layer.
size_t NumTurnedPairs(const ModelConfig& config, const LayerKind& kind) {
  return config.key_value_heads_of(kind) * ops::KeyOffsets::kMaxTurnedPairs;
}

// Numbers in the row turns of the layers of one kind.
size_t NumRowTurns(const ModelConfig& config, const LayerKind& kind) {
  return config.rotary_channels(kind) / 2 * 2 * kKvPageTokens;
}

// What the offsets of all layers take: first numbers of lines, then turned pairs, then row turns.
struct KeyOffsetSizes {
  explicit KeyOffsetSizes(const ModelConfig& config) {
    // The layer that guesses has no biases.
    for (size_t i = 0; i < config.num_hidden_layers; ++i) {
      const LayerKind& kind = config.layer_kind(i);
      num_lines += 2 * config.key_value_channels(kind);
      num_pairs += NumTurnedPairs(config, kind);
    }
    for (const LayerKind& kind : config.layer_kinds) num_turns += NumRowTurns(config, kind);
  }

  size_t num_lines = 0;
  size_t num_pairs = 0;
  size_t num_turns = 0;

  uint64_t bytes() const {
    return (num_lines + num_turns) * sizeof(float) + num_pairs * sizeof(ops::TurnedPair);
  }
};

}  // namespace

KvCache::Regions KvCache::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const KvType type = shape.options.kv_type;
  const std::vector<KvPageGroup::Shape> groups =
      KvPages::Groups(ShapeOfKvPages(config, shape.options));
  uint64_t bytes = 0;
  uint64_t scale_bytes = 0;
  for (size_t i = 0; i < shape.num_keeping_layers(); ++i) {
    if (shape.is_mtp_hidden(i)) continue;
    const LayerKind& kind = config.layer_kind(i);
    if (!StoresKeys(kind)) continue;
    const uint64_t pages = groups[KvPages::GroupOf(groups, kind.sliding_window)].num_pages;
    const uint64_t rows = pages * config.key_value_heads_of(kind) * kKvPageTokens;
    bytes += rows * config.head_dim_of(kind) * KvElementBytes(type);
    if (type == KvType::kInt8) scale_bytes += rows * sizeof(float);
  }
  Regions regions;
  regions.key_offsets =
      layout.Add("KV cache: key offsets",
                 HasKeyOffsets(config, type) ? KeyOffsetSizes(config).bytes() : 0, kWholeLife);
  regions.keys = layout.Add("KV cache: keys", bytes, kWholeLife);
  regions.values = layout.Add("KV cache: values", bytes, kWholeLife);
  regions.key_scales = layout.Add("KV cache: key scales", scale_bytes, kWholeLife);
  regions.value_scales = layout.Add("KV cache: value scales", scale_bytes, kWholeLife);
  return regions;
}

KvCache::KvCache(const DecoderShape& shape, const Regions& regions, const ArenaView& arena,
                 const RopeTables& ropes)
    : config_(shape.config),
      sequence_tokens_(shape.sequence_tokens()),
      layers_(shape.num_keeping_layers()),
      key_offsets_(arena.Pointer<float>(regions.key_offsets)) {
  const KvType type = shape.options.kv_type;
  const size_t element_bytes = KvElementBytes(type);
  const std::vector<KvPageGroup::Shape> groups =
      KvPages::Groups(ShapeOfKvPages(shape.config, shape.options));
  auto* keys = arena.Pointer<std::byte>(regions.keys);
  auto* values = arena.Pointer<std::byte>(regions.values);
  auto* key_scales = arena.Pointer<float>(regions.key_scales);
  auto* value_scales = arena.Pointer<float>(regions.value_scales);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (shape.is_mtp_hidden(i)) continue;
    const LayerKind& kind = config_.layer_kind(i);
    Layer& layer = layers_[i];
    if (!kind.stores_tokens()) {
      layer = layers_[kind.kv_shared_layer - 1];
      layer.is_stored = false;
      continue;
    }
    layer.view = {.type = type,
                  .num_key_value_heads = config_.key_value_heads_of(kind),
                  .head_dim = config_.head_dim_of(kind),
                  .rotary_dim = config_.rotary_dim};
    if (!kind.has_attention()) continue;
    layer.is_stored = true;
    layer.group = KvPages::GroupOf(groups, kind.sliding_window);
    layer.rope = ropes.Of(kind);
    const size_t num_pages = groups[layer.group].num_pages;
    layer.view.num_pages = num_pages;
    layer.view.keys = keys;
    layer.view.values = values;
    const size_t rows = layer.view.num_key_value_heads * num_pages * kKvPageTokens;
    keys += rows * layer.view.head_dim * element_bytes;
    values += rows * layer.view.head_dim * element_bytes;
    if (type == KvType::kInt8) {
      layer.view.key_scales = std::exchange(key_scales, key_scales + rows);
      layer.view.value_scales = std::exchange(value_scales, value_scales + rows);
    }
  }
}

void KvCache::SubtractKeyOffsets(std::span<const float* const> key_biases) {
  float* next = key_offsets_;
  const KeyOffsetSizes sizes(config_);
  auto* next_pairs = reinterpret_cast<ops::TurnedPair*>(next + sizes.num_lines);
  auto* next_turns = reinterpret_cast<float*>(next_pairs + sizes.num_pairs);
  std::vector<float*> turns_of_kinds;
  turns_of_kinds.reserve(config_.layer_kinds.size());
  for (const LayerKind& kind : config_.layer_kinds) {
    turns_of_kinds.push_back(next_turns);
    next_turns += NumRowTurns(config_, kind);
  }
  // Layers that share a rope table have the same lines.
  const float* table = nullptr;
  std::vector<TurnLine> lines;
  std::span<float> row_turns;
  for (size_t i = 0; i < config_.num_hidden_layers; ++i) {
    Layer& layer = layers_[i];
    const LayerKind& kind = config_.layer_kind(i);
    if (!kind.stores_tokens()) {
      layer.view.key_offsets = layers_[kind.kv_shared_layer - 1].view.key_offsets;
    }
    if (!layer.is_stored || key_biases[i] == nullptr) continue;
    const size_t channels = config_.key_value_channels(kind);
    if (layer.rope.cosines != table) {
      table = layer.rope.cosines;
      std::vector<double> frequencies;
      if (table != nullptr) {
        frequencies = RopeInverseFrequencies(config_, kind, sequence_tokens_);
        row_turns = {turns_of_kinds[static_cast<size_t>(&kind - config_.layer_kinds.data())],
                     NumRowTurns(config_, kind)};
        FillRowTurns(frequencies, row_turns);
      }
      lines = std::vector<TurnLine>(frequencies.begin(), frequencies.end());
    }
    const std::span middles(std::exchange(next, next + channels), channels);
    const std::span slopes(std::exchange(next, next + channels), channels);
    const size_t num_pairs = NumTurnedPairs(config_, kind);
    const std::span pairs(std::exchange(next_pairs, next_pairs + num_pairs), num_pairs);
    FillKeyOffsets(lines, layer.view.head_dim, {key_biases[i], channels}, middles, slopes, pairs);
    layer.view.key_offsets = {.middles = middles.data(),
                              .slopes = slopes.data(),
                              .cosines = layer.rope.cosines,
                              .sines = layer.rope.sines,
                              .turned_pairs = pairs.data(),
                              .row_turns = row_turns.data()};
  }
}

namespace {

// Rope's turn by a number of positions, which may be negative.
struct Turn {
  Turn(const RopeTableView& rope, int64_t positions) {
    FillRopeTurn(rope.inverse_frequencies, static_cast<double>(positions), cosines, sines);
  }

  float cosines[ops::kMaxHeadDim / 2];
  float sines[ops::kMaxHeadDim / 2];
};

void TurnRows(const KvCache::Layer& layer, const PageMove& move, ops::KvRowMove& rows) {
  const Turn turn(layer.rope, move.turn());
  const Turn old_turn(layer.rope, move.old_shift);
  const Turn new_turn(layer.rope, move.new_shift);
  rows.old_shift = {
      .distance = move.old_shift, .cosines = old_turn.cosines, .sines = old_turn.sines};
  rows.new_shift = {
      .distance = move.new_shift, .cosines = new_turn.cosines, .sines = new_turn.sines};
  ops::MoveRows(layer.view, rows, turn.cosines, turn.sines);
}

}  // namespace

void KvCache::Move(std::span<const PageMove> moves, const ThreadPool& pool) const {
  pool.ParallelFor(layers_.size(), [&](size_t index) {
    const Layer& layer = layers_[index];
    if (!layer.is_stored) return;
    for (const PageMove& move : moves) {
      if (move.group != layer.group) continue;
      ops::KvRowMove rows = {.source_row = move.source_page * kKvPageTokens + move.source_row(),
                             .target_row = move.target_page * kKvPageTokens + move.target_row(),
                             .num_rows = move.num_rows,
                             .position = move.position,
                             .distance = move.distance};
      if (move.turn() != 0 && layer.rope.cosines != nullptr) {
        TurnRows(layer, move, rows);
      } else {
        ops::MoveRows(layer.view, rows, nullptr, nullptr);
      }
    }
  });
}

}  // namespace cria
