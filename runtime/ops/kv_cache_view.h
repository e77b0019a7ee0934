#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cria {

// How keys and values are stored.
enum class KvType : uint8_t {
  kF32,
  kF16,   // Magnitudes above 65504 are stored as 65504.
  kInt8,  // With one float scale per position and head: value = scale * int8, scale = absmax / 127.
};
std::string_view KvTypeName(KvType type);
size_t KvElementBytes(KvType type);

// Positions on one page of the KV cache.
inline constexpr size_t kKvPageTokens = 64;

namespace ops {

// Maximum head_dim: operators keep one head's row on the stack.
inline constexpr size_t kMaxHeadDim = 1024;

// The pages of one sequence: block b, which is the positions from b * kKvPageTokens on, is on page
// pages[b].
struct KvPageTable {
  std::span<const uint32_t> pages;

  // The row of a position among the rows of all pages. The position must be in the table.
  size_t Row(size_t position) const {
    return pages[position / kKvPageTokens] * kKvPageTokens + position % kKvPageTokens;
  }
};

// The keys and values of one layer, on the pages of all sequences. A page's rows of a head are
// adjacent, so that reading a head's context is a sequential pass over each page.
struct KvCacheView {
  KvType type = KvType::kF32;
  size_t num_key_value_heads = 0;
  size_t head_dim = 0;
  size_t num_pages = 0;
  void* keys = nullptr;           // [num_key_value_heads][num_pages][kKvPageTokens][head_dim]
  void* values = nullptr;         // The same shape.
  float* key_scales = nullptr;    // kInt8: [num_key_value_heads][num_pages][kKvPageTokens]
  float* value_scales = nullptr;  // The same shape.
  // What is subtracted from every key before it is stored, [num_key_value_heads][head_dim]; null:
  // nothing. All scores of a query become smaller by the same number, so attention does not change,
  // but where keys differ little from each other, int8 has more steps for how they differ.
  const float* key_offsets = nullptr;
  size_t rotary_dim = 0;  // The channels at the start of each head that rope rotates; 0: all.

  // The rows of each head.
  size_t num_rows() const { return num_pages * kKvPageTokens; }
};

// Stores the keys and values of one position, each [num_key_value_heads][head_dim], in `row` of
// each head.
void StoreKeyValue(const KvCacheView& cache, size_t row, const float* keys, const float* values);

}  // namespace ops
}  // namespace cria
