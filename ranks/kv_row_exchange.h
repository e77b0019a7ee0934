#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/collective.h"
#include "cria/error.h"
#include "decode/kv_rows.h"
#include "decode/rank_link.h"
#include "ops/kv_cache_view.h"
#include "ranks/divide.h"

namespace cria::ranks {

// Brings rows of keys and values of all heads to rank 0, or from there to the ranks that have them.
// Each call takes the rows of one page of the KV cache at most.
class KvRowExchange {
 public:
  // Bytes of memory that rank 0 needs for the rows of all heads, and another rank for its own.
  static uint64_t MemoryBytes(size_t num_heads, size_t head_dim, KvType type);

  KvRowExchange() = default;
  // All of these must outlive the object.
  KvRowExchange(Collective& collective, std::span<const RankShare> shares,
                std::span<std::byte> memory);

  // Called by all ranks, each with its own part of the cache.
  Status Exchange(const KvRows& rows, const ops::KvCacheView& cache, KvDirection direction) {
    return direction == KvDirection::kToRank0 ? Gather(rows, cache) : Scatter(rows, cache);
  }
  // On rank 0, where the rows of a head come to or are taken from.
  KvParts RowsOf(const KvRows& rows, const ops::KvCacheView& cache, size_t head) const;

 private:
  Status Gather(const KvRows& rows, const ops::KvCacheView& cache);
  Status Scatter(const KvRows& rows, const ops::KvCacheView& cache);
  // The heads that a rank sends: those that no earlier rank has.
  Range SentHeads(size_t rank) const;

  Collective* collective_ = nullptr;
  std::span<const RankShare> shares_;
  // What RowsOf returns, one head after another.
  std::span<std::byte> memory_;
  // On rank 0, with one element for each rank.
  std::vector<std::span<std::byte>> received_;
  std::vector<std::span<const std::byte>> sent_;
};

}  // namespace cria::ranks
