#include "decode/kv_rows.h"

namespace cria {

std::array<size_t, 4> KvPartRowBytes(size_t head_dim, KvType type) {
  const size_t elements = head_dim * KvElementBytes(type);
  const size_t scale = type == KvType::kInt8 ? sizeof(float) : 0;
  return {elements, elements, scale, scale};
}

uint64_t KvRowBytes(size_t head_dim, KvType type) {
  uint64_t bytes = 0;
  for (const size_t part : KvPartRowBytes(head_dim, type)) bytes += part;
  return bytes;
}

KvParts RowsInCache(const KvRows& rows, const ops::KvCacheView& cache, size_t head) {
  const std::array<void*, 4> begins = {cache.keys, cache.values, cache.key_scales,
                                       cache.value_scales};
  const std::array<size_t, 4> bytes = KvPartRowBytes(cache.head_dim, cache.type);
  const size_t first_row = head * cache.num_rows() + rows.first_row;
  KvParts parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (bytes[i] == 0) continue;
    parts[i] = {static_cast<std::byte*>(begins[i]) + first_row * bytes[i],
                rows.num_rows * bytes[i]};
  }
  return parts;
}

}  // namespace cria
