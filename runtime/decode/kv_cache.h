#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "decode/decoder_options.h"
#include "decode/kv_pages.h"
#include "decode/rope_tables.h"
#include "ops/kv_cache_view.h"

namespace cria {

// The keys and values of all layers, on the pages that KvPages gives to sequences.
class KvCache {
 public:
  // What layers store, one behind another, with the sizes of each. The rows of a layer are those of
  // all pages of its group.
  struct Regions {
    // f32 [2][key_value_heads][head_dim], middles and slopes; empty unless HasKeyOffsets.
    ArenaLayout::RegionId key_offsets;
    ArenaLayout::RegionId keys;          // [key_value_heads][rows][head_dim]
    ArenaLayout::RegionId values;        // The same shape.
    ArenaLayout::RegionId key_scales;    // f32 [key_value_heads][rows]
    ArenaLayout::RegionId value_scales;  // The same shape; both empty unless kInt8.
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);

  // `ropes` turns the keys that move.
  KvCache(const DecoderShape& shape, const Regions& regions, const ArenaView& arena,
          const RopeTables& ropes);

  struct Layer {
    ops::KvCacheView view;
    size_t group = 0;  // The group in KvPages.
    RopeTableView rope;
    bool is_stored = false;  // The keys and values are the layer's own.
  };

  // If HasKeyOffsets: subtracts offsets from keys from now on, those that follow from the biases of
  // keys in each layer, [num_hidden_layers] of [key_value_heads][head_dim], null if there are none.
  void SubtractKeyOffsets(std::span<const float* const> key_biases);

  size_t num_layers() const { return layers_.size(); }
  // The view of a layer without attention has no memory; that of a layer without keys and values of
  // its own is another layer's.
  const Layer& layer(size_t index) const { return layers_[index]; }

  // Moves rows in all layers of the moves' groups.
  void Move(std::span<const PageMove> moves, const ThreadPool& pool) const;

 private:
  const ModelConfig& config_;
  const size_t sequence_tokens_;
  std::vector<Layer> layers_;
  float* const key_offsets_;
};

}  // namespace cria
