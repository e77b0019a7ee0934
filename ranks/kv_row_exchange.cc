#include "ranks/kv_row_exchange.h"

#include <algorithm>

namespace cria::ranks {
namespace {

uint64_t HeadBytes(const KvRows& rows, const ops::KvCacheView& cache) {
  return rows.num_rows * KvRowBytes(cache.head_dim, cache.type);
}

}  // namespace

uint64_t KvRowExchange::MemoryBytes(size_t num_heads, size_t head_dim, KvType type) {
  return num_heads * kKvPageTokens * KvRowBytes(head_dim, type);
}

KvRowExchange::KvRowExchange(Collective& collective, std::span<const RankShare> shares,
                             std::span<std::byte> memory)
    : collective_(&collective), shares_(shares), memory_(memory) {
  if (collective.rank() != 0) return;
  received_.resize(collective.num_ranks());
  sent_.resize(collective.num_ranks());
}

KvParts KvRowExchange::RowsOf(const KvRows& rows, const ops::KvCacheView& cache,
                              size_t head) const {
  std::span<std::byte> rest = memory_.subspan(head * HeadBytes(rows, cache));
  const std::array<size_t, 4> bytes = KvPartRowBytes(cache.head_dim, cache.type);
  KvParts parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = rest.first(rows.num_rows * bytes[i]);
    rest = rest.subspan(parts[i].size());
  }
  return parts;
}

Range KvRowExchange::SentHeads(size_t rank) const {
  const Range& own = shares_[rank].key_value_heads;
  if (rank == 0) return own;
  return {std::max(own.begin, shares_[rank - 1].key_value_heads.end), own.end};
}

Status KvRowExchange::Gather(const KvRows& rows, const ops::KvCacheView& cache) {
  const size_t rank = collective_->rank();
  const size_t first = shares_[rank].key_value_heads.begin;
  const Range heads = SentHeads(rank);
  const uint64_t head_bytes = HeadBytes(rows, cache);
  std::byte* next = memory_.data();
  for (size_t head = heads.begin; head < heads.end; ++head) {
    for (const std::span<const std::byte> part : RowsInCache(rows, cache, head - first)) {
      next = std::ranges::copy(part, next).out;
    }
  }
  if (rank != 0) return collective_->Gather(memory_.first(heads.size() * head_bytes), {});
  for (size_t other = 1; other < shares_.size(); ++other) {
    const Range sent = SentHeads(other);
    received_[other] = memory_.subspan(sent.begin * head_bytes, sent.size() * head_bytes);
  }
  return collective_->Gather({}, received_);
}

Status KvRowExchange::Scatter(const KvRows& rows, const ops::KvCacheView& cache) {
  const uint64_t head_bytes = HeadBytes(rows, cache);
  if (collective_->rank() != 0) {
    const std::span<std::byte> own = memory_.first(cache.num_key_value_heads * head_bytes);
    CRIA_RETURN_IF_ERROR(collective_->Scatter({}, own));
  } else {
    for (size_t other = 1; other < shares_.size(); ++other) {
      const Range& heads = shares_[other].key_value_heads;
      sent_[other] = memory_.subspan(heads.begin * head_bytes, heads.size() * head_bytes);
    }
    CRIA_RETURN_IF_ERROR(collective_->Scatter(sent_, {}));
  }
  const std::byte* next = memory_.data();
  for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
    for (const std::span<std::byte> part : RowsInCache(rows, cache, head)) {
      std::copy_n(next, part.size(), part.data());
      next += part.size();
    }
  }
  return {};
}

}  // namespace cria::ranks
