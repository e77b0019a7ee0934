#include "ops/kv_cache_view.h"

#include <cstring>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kv_cache_view.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

float QuantizeHead(const float* input, size_t head_dim, int8_t* output) {
  return QuantizeRow(input, head_dim, output);
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria {

std::string_view KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kInt8:
      return "int8";
  }
  return "unknown";
}

namespace ops {

HWY_EXPORT(QuantizeHead);

void StoreKeyValue(const KvCacheView& cache, size_t position, const float* keys,
                   const float* values) {
  const auto quantize_head = HWY_DYNAMIC_POINTER(QuantizeHead);
  for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
    const float* key = keys + head * cache.head_dim;
    const float* value = values + head * cache.head_dim;
    const size_t row = head * cache.capacity_tokens + position;
    const size_t offset = row * cache.head_dim;
    switch (cache.type) {
      case KvType::kF32:
        std::memcpy(static_cast<float*>(cache.keys) + offset, key, cache.head_dim * sizeof(float));
        std::memcpy(static_cast<float*>(cache.values) + offset, value,
                    cache.head_dim * sizeof(float));
        break;
      case KvType::kInt8:
        cache.key_scales[row] =
            quantize_head(key, cache.head_dim, static_cast<int8_t*>(cache.keys) + offset);
        cache.value_scales[row] =
            quantize_head(value, cache.head_dim, static_cast<int8_t*>(cache.values) + offset);
        break;
    }
  }
}

}  // namespace ops
}  // namespace cria
#endif  // HWY_ONCE
