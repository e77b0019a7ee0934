// What is subtracted from keys (ops::KeyOffsets), and what scores lack by it, compiled once per
// instruction set.

#if defined(CRIA_OPS_KEY_OFFSETS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_KEY_OFFSETS_INL_H_
#undef CRIA_OPS_KEY_OFFSETS_INL_H_
#else
#define CRIA_OPS_KEY_OFFSETS_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "ops/kv_cache_view.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The offsets of one head's keys on the page of a position: `middle` + (row - kMiddleRow) * `slope`
// for each row of the page.
struct PageOffsets {
  PageOffsets(const KeyOffsets& offsets, size_t head, size_t head_dim, size_t rotary_dim,
              size_t position) {
    Turn(offsets, offsets.middles + head * head_dim, head_dim, rotary_dim, position, middle);
    Turn(offsets, offsets.slopes + head * head_dim, head_dim, rotary_dim, position, slope);
  }

  static constexpr float kMiddleRow = static_cast<float>(kKvPageTokens - 1) / 2;

  float At(size_t position, size_t channel) const {
    const float row = static_cast<float>(position % kKvPageTokens) - kMiddleRow;
    return middle[channel] + row * slope[channel];
  }

  float middle[kMaxHeadDim];
  float slope[kMaxHeadDim];

 private:
  // Turns a row of the first page as rope turns keys by the position of the page's first row.
  static HWY_NOINLINE void Turn(const KeyOffsets& offsets, const float* HWY_RESTRICT row,
                                size_t head_dim, size_t rotary_dim, size_t position,
                                float* HWY_RESTRICT turned) {
    const size_t half = offsets.cosines == nullptr ? 0 : rotary_dim / 2;
    const size_t first_entry = position / kKvPageTokens * kKvPageTokens * half;
    const float* HWY_RESTRICT cosines = offsets.cosines + first_entry;
    const float* HWY_RESTRICT sines = offsets.sines + first_entry;
    for (size_t i = 0; i < half; ++i) {
      turned[i] = row[i] * cosines[i] - row[half + i] * sines[i];
      turned[half + i] = row[i] * sines[i] + row[half + i] * cosines[i];
    }
    for (size_t j = 2 * half; j < head_dim; ++j) turned[j] = row[j];
  }
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

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_KEY_OFFSETS_INL_H_
