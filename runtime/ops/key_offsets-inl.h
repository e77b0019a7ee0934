// What is subtracted from keys (ops::KeyOffsets), and what scores lack by it, compiled once per
// instruction set.

#if defined(CRIA_OPS_KEY_OFFSETS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_KEY_OFFSETS_INL_H_
#undef CRIA_OPS_KEY_OFFSETS_INL_H_
#else
#define CRIA_OPS_KEY_OFFSETS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "hwy/highway.h"
#include "ops/kv_cache_view.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How rope turns the first row of a page.
struct PageTurn {
  HWY_NOINLINE PageTurn(const KeyOffsets& offsets, const OffsetPage& page, size_t half) {
    const size_t entry = static_cast<size_t>(std::abs(page.first_position)) * half;
    cosines = offsets.cosines + entry;
    sines = offsets.sines + entry;
    const bool is_negative = page.first_position < 0;
    if (page.cosines == nullptr && !is_negative) return;
    const float sign = is_negative ? -1.0f : 1.0f;
    for (size_t i = 0; i < half; ++i) {
      const float cosine = cosines[i];
      const float sine = sign * sines[i];
      const float more_cosine = page.cosines == nullptr ? 1.0f : page.cosines[i];
      const float more_sine = page.sines == nullptr ? 0.0f : page.sines[i];
      own_cosines_[i] = cosine * more_cosine - sine * more_sine;
      own_sines_[i] = cosine * more_sine + sine * more_cosine;
    }
    cosines = own_cosines_;
    sines = own_sines_;
  }
  PageTurn(const PageTurn&) = delete;
  PageTurn& operator=(const PageTurn&) = delete;

  const float* cosines;
  const float* sines;

 private:
  float own_cosines_[kMaxHeadDim / 2];
  float own_sines_[kMaxHeadDim / 2];
};

// The offsets of one head's keys on a page: `middle` + (row - kMiddleRow) * `slope` for each row of
// the page, and the turned pairs.
struct PageOffsets {
  PageOffsets(const KeyOffsets& offsets, size_t head, size_t head_dim, size_t rotary_dim,
              const OffsetPage& page)
      : first_position(page.first_position),
        half(offsets.cosines == nullptr ? 0 : rotary_dim / 2),
        row_turns(offsets.row_turns) {
    const PageTurn turn(offsets, page, half);
    Turn(turn, offsets.middles + head * head_dim, head_dim, middle);
    Turn(turn, offsets.slopes + head * head_dim, head_dim, slope);
    if (offsets.turned_pairs == nullptr) return;
    const TurnedPair* const pairs = offsets.turned_pairs + head * KeyOffsets::kMaxTurnedPairs;
    for (; num_turned < KeyOffsets::kMaxTurnedPairs; ++num_turned) {
      const TurnedPair& pair = pairs[num_turned];
      if (pair.index == TurnedPair::kNone) break;
      const float cosine = turn.cosines[pair.index];
      const float sine = turn.sines[pair.index];
      turned[num_turned] = {.index = pair.index,
                            .a = pair.a * cosine - pair.b * sine,
                            .b = pair.a * sine + pair.b * cosine};
    }
  }

  static constexpr float kMiddleRow = static_cast<float>(kKvPageTokens - 1) / 2;

  // The row of a position that belongs to the page.
  size_t Row(size_t position) const {
    return static_cast<size_t>(static_cast<ptrdiff_t>(position) - first_position);
  }

  // Adds the offset of a row times `factor`, which is 1 or -1, to the key.
  HWY_NOINLINE void Add(float factor, size_t page_row, size_t head_dim,
                        float* HWY_RESTRICT key) const {
    const float row = static_cast<float>(page_row) - kMiddleRow;
    for (size_t j = 0; j < head_dim; ++j) key[j] += factor * (middle[j] + row * slope[j]);
    for (size_t i = 0; i < num_turned; ++i) {
      const TurnedPair& pair = turned[i];
      const float cosine = Cosines(pair)[page_row];
      const float sine = Sines(pair)[page_row];
      key[pair.index] += factor * (pair.a * cosine - pair.b * sine);
      key[pair.index + half] += factor * (pair.a * sine + pair.b * cosine);
    }
  }

  // The turns of a pair from the page's first row to each of its rows, [kKvPageTokens].
  const float* Cosines(const TurnedPair& pair) const {
    return row_turns + pair.index * 2 * kKvPageTokens;
  }
  const float* Sines(const TurnedPair& pair) const { return Cosines(pair) + kKvPageTokens; }

  float middle[kMaxHeadDim];
  float slope[kMaxHeadDim];
  ptrdiff_t first_position;
  size_t half;
  const float* row_turns;
  size_t num_turned = 0;
  TurnedPair turned[KeyOffsets::kMaxTurnedPairs];  // At the page's first row.

 private:
  // Turns a row of the first page.
  HWY_NOINLINE void Turn(const PageTurn& turn, const float* HWY_RESTRICT row, size_t head_dim,
                         float* HWY_RESTRICT output) const {
    const float* HWY_RESTRICT cosines = turn.cosines;
    const float* HWY_RESTRICT sines = turn.sines;
    for (size_t i = 0; i < half; ++i) {
      output[i] = row[i] * cosines[i] - row[half + i] * sines[i];
      output[half + i] = row[i] * sines[i] + row[half + i] * cosines[i];
    }
    for (size_t j = 2 * half; j < head_dim; ++j) output[j] = row[j];
  }
};

// The turns of a pair at the rows [begin, end) of a block, whose first row is row `first_row` of a
// page of offsets. The other rows are 0.
struct BlockTurns {
  BlockTurns(const PageOffsets& page, const TurnedPair& pair, size_t begin, size_t end,
             size_t first_row) {
    std::copy_n(page.Cosines(pair) + first_row, end - begin, cosines + begin);
    std::copy_n(page.Sines(pair) + first_row, end - begin, sines + begin);
  }

  float cosines[kKvPageTokens] = {};
  float sines[kKvPageTokens] = {};
};

// What one query's scores of all keys of a page lack: `middle` + (row - kMiddleRow) * `slope`.
struct OffsetScore {
  OffsetScore(const PageOffsets& offsets, const float* HWY_RESTRICT query, size_t head_dim,
              float scale) {
    const hn::ScalableTag<float> d;
    auto middles = hn::Zero(d);
    auto slopes = hn::Zero(d);
    size_t j = 0;
    for (; j + hn::MaxLanes(d) <= head_dim; j += hn::MaxLanes(d)) {
      const auto channels = hn::LoadU(d, query + j);
      middles = hn::MulAdd(channels, hn::LoadU(d, offsets.middle + j), middles);
      slopes = hn::MulAdd(channels, hn::LoadU(d, offsets.slope + j), slopes);
    }
    if (j < head_dim) {
      const size_t count = head_dim - j;
      const auto channels = hn::LoadN(d, query + j, count);
      middles = hn::MulAdd(channels, hn::LoadN(d, offsets.middle + j, count), middles);
      slopes = hn::MulAdd(channels, hn::LoadN(d, offsets.slope + j, count), slopes);
    }
    middle = hn::ReduceSum(d, middles) * scale;
    slope = hn::ReduceSum(d, slopes) * scale;
  }

  float middle;
  float slope;
};

// What one query's scores lack by a turned pair: `cosine` and `sine` times those of each row.
struct TurnedScore {
  TurnedScore(const PageOffsets& offsets, const TurnedPair& pair, const float* HWY_RESTRICT query,
              float scale) {
    const float a = query[pair.index] * scale;
    const float b = query[pair.index + offsets.half] * scale;
    cosine = a * pair.a + b * pair.b;
    sine = b * pair.a - a * pair.b;
  }

  float cosine;
  float sine;
};

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_KEY_OFFSETS_INL_H_
