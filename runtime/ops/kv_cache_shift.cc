#include "ops/kv_cache_shift.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/rope.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kv_cache_shift.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/key_offsets-inl.h"
#include "ops/kv_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

// What is added to the keys of one head to get those that rope has turned.
class OffsetsOfRows {
 public:
  OffsetsOfRows(const KvCacheView& cache, size_t head, const KeyShift& shift)
      : cache_(cache), head_(head), shift_(shift) {}

  void Add(float factor, size_t position, float* key) {
    if (cache_.key_offsets.middles == nullptr) return;
    const OffsetPage page = shift_.PageOf(position);
    if (!page_ || page_->first_position != page.first_position) {
      page_.emplace(cache_.key_offsets, head_, cache_.head_dim, cache_.rotary_channels(), page);
    }
    page_->Add(factor, page_->Row(position), cache_.head_dim, key);
  }

 private:
  const KvCacheView& cache_;
  const size_t head_;
  const KeyShift& shift_;
  std::optional<PageOffsets> page_;
};

void TurnKeys(const KvCacheView& cache, const KvRowMove& move, const float* cosines,
              const float* sines) {
  const size_t head_dim = cache.head_dim;
  float key[kMaxHeadDim] = {};
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    T* const keys = static_cast<T*>(cache.keys);
    for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
      const size_t source = head * cache.num_rows() + move.source_row;
      const size_t target = head * cache.num_rows() + move.target_row;
      OffsetsOfRows old_offsets(cache, head, move.old_shift);
      OffsetsOfRows new_offsets(cache, head, move.new_shift);
      for (size_t i = 0; i < move.num_rows; ++i) {
        const size_t position = move.position + i;
        const float old_scale = cache.key_scales == nullptr ? 1.0f : cache.key_scales[source + i];
        LoadSpreadRow(keys + (source + i) * head_dim, old_scale, head_dim, key);
        old_offsets.Add(1.0f, position + move.distance, key);
        TurnBack(key, cache.rotary_channels(), cosines, sines);
        new_offsets.Add(-1.0f, position, key);
        const float new_scale = StoreSpreadRow(key, head_dim, keys + (target + i) * head_dim);
        if (cache.key_scales != nullptr) cache.key_scales[target + i] = new_scale;
      }
    }
  });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(TurnKeys);

namespace {

// Copies rows of keys or values, and their scales, which are null if there are none.
void CopyRows(const KvCacheView& cache, const KvRowMove& move, void* data, float* scales) {
  const size_t row_bytes = cache.head_dim * KvElementBytes(cache.type);
  auto* const bytes = static_cast<std::byte*>(data);
  for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
    const size_t source = head * cache.num_rows() + move.source_row;
    const size_t target = head * cache.num_rows() + move.target_row;
    std::memmove(bytes + target * row_bytes, bytes + source * row_bytes, move.num_rows * row_bytes);
    if (scales != nullptr) {
      std::memmove(scales + target, scales + source, move.num_rows * sizeof(float));
    }
  }
}

}  // namespace

void MoveRows(const KvCacheView& cache, const KvRowMove& move, const float* cosines,
              const float* sines) {
  if (cosines != nullptr) {
    HWY_DYNAMIC_DISPATCH(TurnKeys)(cache, move, cosines, sines);
  } else if (move.source_row != move.target_row) {
    CopyRows(cache, move, cache.keys, cache.key_scales);
  }
  if (move.source_row != move.target_row) {
    CopyRows(cache, move, cache.values, cache.value_scales);
  }
}

}  // namespace cria::ops
#endif  // HWY_ONCE
