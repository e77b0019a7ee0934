#include "ops/kv_cache_view.h"

#include <cstring>
#include <type_traits>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kv_cache_view.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/key_offsets-inl.h"
#include "ops/kv_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

void StoreKeyValue(const KvCacheView& cache, size_t first_row, size_t position, const float* keys,
                   const float* values, const KeyShift& shift) {
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    [[maybe_unused]] float difference[kMaxHeadDim];
    [[maybe_unused]] const KeyOffsets& offsets = cache.key_offsets;
    for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
      const size_t row = head * cache.num_rows() + first_row;
      const size_t input = head * cache.head_dim;
      const size_t output = row * cache.head_dim;
      const float* key = keys + input;
      if constexpr (std::is_same_v<T, int8_t>) {
        if (offsets.middles != nullptr) {
          const PageOffsets page(offsets, head, cache.head_dim, cache.rotary_channels(),
                                 shift.PageOf(position));
          std::memcpy(difference, key, cache.head_dim * sizeof(float));
          page.Add(-1.0f, page.Row(position), cache.head_dim, difference);
          key = difference;
        }
      }
      const float key_scale =
          StoreSpreadRow(key, cache.head_dim, static_cast<T*>(cache.keys) + output);
      const float value_scale =
          StoreRow(values + input, cache.head_dim, static_cast<T*>(cache.values) + output);
      if (cache.type == KvType::kInt8) {
        cache.key_scales[row] = key_scale;
        cache.value_scales[row] = value_scale;
      }
    }
  });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria {

std::string_view KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kInt8:
      return "int8";
  }
  return "unknown";
}

size_t KvElementBytes(KvType type) {
  switch (type) {
    case KvType::kF32:
      return sizeof(float);
    case KvType::kF16:
      return sizeof(uint16_t);
    case KvType::kInt8:
      return sizeof(int8_t);
  }
  return 0;
}

namespace ops {

HWY_EXPORT(StoreKeyValue);

void StoreKeyValue(const KvCacheView& cache, size_t row, size_t position, const float* keys,
                   const float* values, const KeyShift& shift) {
  HWY_DYNAMIC_DISPATCH(StoreKeyValue)(cache, row, position, keys, values, shift);
}

}  // namespace ops
}  // namespace cria
#endif  // HWY_ONCE
