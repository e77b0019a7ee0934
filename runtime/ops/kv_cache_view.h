#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cria {

// How keys and values are stored.
enum class KvType : uint8_t {
  kF32,
  kF16,  // Magnitudes above 65504 are stored as 65504.
  // With one float scale per position and head: value = scale * int8, scale = absmax / 127. Keys
  // are multiplied by Hadamard's matrix before (HadamardTransform), as queries are when they are
  // rounded to int8. This changes no score, but the few channels that are large in trained models
  // are spread over all channels of a head, so that steps are smaller (QuaRot, Ashkboos et al.
  // 2024).
  kInt8,
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

// The page of rows with the same offsets to which a key belongs (KeyOffsets), where rope has turned
// it: `first_position` is that of the page's first row. It may be negative, down to
// -kKvPageTokens. Cosines and sines are those of a further turn; null: there is none.
struct OffsetPage {
  ptrdiff_t first_position = 0;
  const float* cosines = nullptr;
  const float* sines = nullptr;
};

// Tokens of a sequence were dropped before position `first`, and later keys were left as they are:
// rope has turned the keys from `first` on as those of positions that are `distance` more. Scores
// depend on differences of positions alone. So queries are turned by as much more, too, and turned
// back for the keys before `first`. No key is rounded again.
struct KeyShift {
  size_t first = 0;
  size_t distance = 0;  // 0: all keys are those of their positions.
  // Rope's turn by the distance, [half of the channels that are rotated].
  const float* cosines = nullptr;
  const float* sines = nullptr;

  bool IsShifted(size_t position) const { return distance != 0 && position >= first; }
  OffsetPage PageOf(size_t position) const {
    if (!IsShifted(position)) {
      return {.first_position = static_cast<ptrdiff_t>(position / kKvPageTokens * kKvPageTokens)};
    }
    const size_t row = (position + distance) % kKvPageTokens;
    return {.first_position = static_cast<ptrdiff_t>(position) - static_cast<ptrdiff_t>(row),
            .cosines = cosines,
            .sines = sines};
  }
};

// A part of the offsets of a head's keys that turns too fast for a line: in channels `index` and
// `index` + half of those that rope rotates, the bias (a, b), as rope turns it.
struct TurnedPair {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t index = kNone;
  float a = 0.0f;
  float b = 0.0f;
};

// What is subtracted from every key before it is stored, so that int8 has more steps for how keys
// differ from each other. Offsets change linearly over the rows of a page, but for those of turned
// pairs. Those of a page are those of the first page, turned as rope turns a key by the position of
// the page's first row. Attention adds their part to the scores.
struct KeyOffsets {
  static constexpr size_t kMaxTurnedPairs = 8;

  // The first page's offsets, [num_key_value_heads][head_dim]: between its middle rows, and the
  // change from row to row. Null: nothing is subtracted.
  const float* middles = nullptr;
  const float* slopes = nullptr;
  // The layer's rope table, [positions][half of the channels that are rotated]; null: there is no
  // rope, all keys have the same offset, and slopes are 0. Then all scores of a query lack the
  // same, which changes no result.
  const float* cosines = nullptr;
  const float* sines = nullptr;
  // [num_key_value_heads][kMaxTurnedPairs]; a head's pairs end before the first without an index.
  // Null: there are none.
  const TurnedPair* turned_pairs = nullptr;
  // The cosines and sines of each pair's turn from the page's first row to each of its rows, [half
  // of the channels that are rotated][2][kKvPageTokens].
  const float* row_turns = nullptr;
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
  KeyOffsets key_offsets;         // Only of kInt8.
  size_t rotary_dim = 0;  // The channels at the start of each head that rope rotates; 0: all.

  // The rows of each head.
  size_t num_rows() const { return num_pages * kKvPageTokens; }
  size_t rotary_channels() const { return rotary_dim == 0 ? head_dim : rotary_dim; }
};

// Stores the keys and values of one position, each [num_key_value_heads][head_dim], in `row` of
// each head. `shift` is that of the position's sequence, by which the keys were turned, too.
void StoreKeyValue(const KvCacheView& cache, size_t row, size_t position, const float* keys,
                   const float* values, const KeyShift& shift = {});

}  // namespace ops
}  // namespace cria
