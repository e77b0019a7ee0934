#include "decode/kv_cache.h"

#include <utility>

#include "decode/key_offsets.h"
#include "model/rope_table.h"
#include "ops/kv_cache_shift.h"

namespace cria {
namespace {

// The sum of all layers' pages.
uint64_t NumLayerPages(const ModelConfig& config, const KvPages::Shape& shape) {
  const std::vector<KvPageGroup::Shape> groups = KvPages::Groups(shape);
  uint64_t num_pages = 0;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    const LayerKind& kind = config.layer_kind(i);
    if (!kind.has_attention()) continue;
    num_pages += groups[KvPages::GroupOf(groups, kind.sliding_window)].num_pages;
  }
  return num_pages;
}

// Places for the turned pairs of all heads of a layer.
size_t NumTurnedPairs(const ModelConfig& config) {
  return config.num_key_value_heads * ops::KeyOffsets::kMaxTurnedPairs;
}

// Numbers in the row turns of the layers of one kind.
size_t NumRowTurns(const ModelConfig& config) {
  return config.rotary_channels() / 2 * 2 * kKvPageTokens;
}

}  // namespace

KvCache::Regions KvCache::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const ModelConfig& config = shape.config;
  const KvType type = shape.options.kv_type;
  const KvPages::Shape pages = ShapeOfKvPages(config, shape.options);
  const uint64_t rows = NumLayerPages(config, pages) * config.num_key_value_heads * kKvPageTokens;
  const uint64_t bytes = rows * config.head_dim * KvElementBytes(type);
  const uint64_t scale_bytes = type == KvType::kInt8 ? rows * sizeof(float) : 0;
  uint64_t offset_bytes = 0;
  if (HasKeyOffsets(config, type)) {
    const uint64_t layers = config.num_hidden_layers;
    offset_bytes = layers * (2 * config.key_value_channels() * sizeof(float) +
                             NumTurnedPairs(config) * sizeof(ops::TurnedPair)) +
                   config.layer_kinds.size() * NumRowTurns(config) * sizeof(float);
  }
  Regions regions;
  regions.key_offsets = layout.Add("KV cache: key offsets", offset_bytes, kWholeLife);
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
      layers_(shape.config.num_hidden_layers),
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
    const LayerKind& kind = config_.layer_kind(i);
    Layer& layer = layers_[i];
    layer.view = {.type = type,
                  .num_key_value_heads = config_.num_key_value_heads,
                  .head_dim = config_.head_dim,
                  .rotary_dim = config_.rotary_dim};
    if (!kind.has_attention()) continue;
    layer.group = KvPages::GroupOf(groups, kind.sliding_window);
    layer.rope = ropes.Of(kind);
    const size_t num_pages = groups[layer.group].num_pages;
    layer.view.num_pages = num_pages;
    layer.view.keys = keys;
    layer.view.values = values;
    const size_t rows = config_.num_key_value_heads * num_pages * kKvPageTokens;
    keys += rows * config_.head_dim * element_bytes;
    values += rows * config_.head_dim * element_bytes;
    if (type == KvType::kInt8) {
      layer.view.key_scales = std::exchange(key_scales, key_scales + rows);
      layer.view.value_scales = std::exchange(value_scales, value_scales + rows);
    }
  }
}

void KvCache::SubtractKeyOffsets(std::span<const float* const> key_biases) {
  const size_t channels = config_.key_value_channels();
  float* next = key_offsets_;
  const size_t num_pairs = NumTurnedPairs(config_);
  auto* next_pairs = reinterpret_cast<ops::TurnedPair*>(next + layers_.size() * 2 * channels);
  auto* const turns_of_kinds = reinterpret_cast<float*>(next_pairs + layers_.size() * num_pairs);
  // Layers that share a rope table have the same lines.
  const float* table = nullptr;
  std::vector<TurnLine> lines;
  std::span<float> row_turns;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    if (key_biases[i] == nullptr) continue;
    const LayerKind& kind = config_.layer_kind(i);
    if (layer.rope.cosines != table) {
      table = layer.rope.cosines;
      std::vector<double> frequencies;
      if (table != nullptr) {
        frequencies = RopeInverseFrequencies(config_, kind, sequence_tokens_);
        const auto kind_index = static_cast<size_t>(&kind - config_.layer_kinds.data());
        row_turns = {turns_of_kinds + kind_index * NumRowTurns(config_), NumRowTurns(config_)};
        FillRowTurns(frequencies, row_turns);
      }
      lines = std::vector<TurnLine>(frequencies.begin(), frequencies.end());
    }
    const std::span middles(std::exchange(next, next + channels), channels);
    const std::span slopes(std::exchange(next, next + channels), channels);
    const std::span pairs(std::exchange(next_pairs, next_pairs + num_pairs), num_pairs);
    FillKeyOffsets(lines, config_.head_dim, {key_biases[i], channels}, middles, slopes, pairs);
    layer.view.key_offsets = {.middles = middles.data(),
                              .slopes = slopes.data(),
                              .cosines = layer.rope.cosines,
                              .sines = layer.rope.sines,
                              .turned_pairs = pairs.data(),
                              .row_turns = row_turns.data()};
  }
}

void KvCache::Move(std::span<const PageMove> moves, const ThreadPool& pool) const {
  const size_t rope_width = config_.rotary_channels() / 2;
  pool.ParallelFor(layers_.size(), [&](size_t index) {
    const Layer& layer = layers_[index];
    if (layer.view.keys == nullptr) return;
    for (const PageMove& move : moves) {
      if (move.group != layer.group) continue;
      const bool is_turned = move.distance != 0 && layer.rope.cosines != nullptr;
      const size_t rope_row = move.distance * rope_width;
      ops::MoveRows(layer.view,
                    {.source_row = move.source_page * kKvPageTokens + move.source_row(),
                     .target_row = move.target_page * kKvPageTokens + move.target_row(),
                     .num_rows = move.num_rows,
                     .position = move.position,
                     .distance = move.distance},
                    is_turned ? layer.rope.cosines + rope_row : nullptr,
                    is_turned ? layer.rope.sines + rope_row : nullptr);
    }
  });
}

}  // namespace cria
