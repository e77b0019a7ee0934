#pragma once

#include <cstddef>
#include <cstdint>

namespace cria {

// How dropped tokens left the keys of a sequence: rope has turned the keys of positions from
// `first` on as those of positions that are `distance` more (ops::KeyShift).
struct SequenceShift {
  // Every number up to this can be multiplied by a frequency without a visible error.
  static constexpr uint32_t kMaxDistance = 1u << 30;

  uint32_t first = 0;
  uint32_t distance = 0;  // 0: all keys are those of their positions.

  bool operator==(const SequenceShift&) const = default;
  // How much more the key of a position is turned.
  uint32_t DistanceAt(size_t position) const { return position < first ? 0 : distance; }

  // The shift when only the first `tokens` are left.
  SequenceShift Truncated(size_t tokens) const { return tokens <= first ? SequenceShift() : *this; }
  // The shift after tokens [first_dropped, first_dropped + count) are dropped from others that stay
  // before and behind them. Keys do not change if tokens are always dropped behind the same first
  // ones, as a conversation and a text do. Otherwise, and beyond kMaxDistance, some are turned.
  SequenceShift Dropped(size_t first_dropped, size_t count) const {
    if (distance != 0 && first_dropped > first) return *this;
    const bool is_largest = count > kMaxDistance - distance;
    return {.first = static_cast<uint32_t>(first_dropped),
            .distance = is_largest ? distance : distance + static_cast<uint32_t>(count)};
  }
};

}  // namespace cria
