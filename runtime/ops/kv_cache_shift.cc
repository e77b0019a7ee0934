#include "ops/kv_cache_shift.h"

#include <cstring>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kv_cache_shift.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/kv_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

// ApplyRope with the negative angle, from elements to floats.
template <typename T>
HWY_INLINE void TurnBack(const T* key, size_t head_dim, const float* HWY_RESTRICT cosines,
                         const float* HWY_RESTRICT sines, float* HWY_RESTRICT output) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t half = head_dim / 2;
  size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const auto a = LoadFloats(d, key + i);
    const auto b = LoadFloats(d, key + half + i);
    const auto cosine = hn::LoadU(d, cosines + i);
    const auto sine = hn::LoadU(d, sines + i);
    hn::StoreU(hn::MulAdd(b, sine, hn::Mul(a, cosine)), d, output + i);
    hn::StoreU(hn::NegMulAdd(a, sine, hn::Mul(b, cosine)), d, output + half + i);
  }
  if (i < half) {
    const size_t rest = half - i;
    const auto a = LoadFloatsN(d, key + i, rest);
    const auto b = LoadFloatsN(d, key + half + i, rest);
    const auto cosine = hn::LoadN(d, cosines + i, rest);
    const auto sine = hn::LoadN(d, sines + i, rest);
    hn::StoreN(hn::MulAdd(b, sine, hn::Mul(a, cosine)), d, output + i, rest);
    hn::StoreN(hn::NegMulAdd(a, sine, hn::Mul(b, cosine)), d, output + half + i, rest);
  }
}

void MoveRows(const KvCacheView& cache, const KvRowMove& move, const float* cosines,
              const float* sines) {
  const size_t head_dim = cache.head_dim;
  const bool has_scales = cache.type == KvType::kInt8;
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    float turned[kMaxHeadDim];
    const auto copy = [&](T* elements, float* scales, size_t source, size_t target) HWY_ATTR {
      std::memmove(elements + target * head_dim, elements + source * head_dim,
                   move.num_rows * head_dim * sizeof(T));
      if (has_scales) {
        std::memmove(scales + target, scales + source, move.num_rows * sizeof(float));
      }
    };
    for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
      const size_t source = head * cache.num_rows() + move.source_row;
      const size_t target = head * cache.num_rows() + move.target_row;
      T* keys = static_cast<T*>(cache.keys);
      if (cosines == nullptr) {
        copy(keys, cache.key_scales, source, target);
      } else {
        for (size_t i = 0; i < move.num_rows; ++i) {
          TurnBack(keys + (source + i) * head_dim, head_dim, cosines, sines, turned);
          const float scale = StoreRow(turned, head_dim, keys + (target + i) * head_dim);
          // Rotation is linear, so the old scale is only a factor of the new one.
          if (has_scales) cache.key_scales[target + i] = cache.key_scales[source + i] * scale;
        }
      }
      if (source != target) {
        copy(static_cast<T*>(cache.values), cache.value_scales, source, target);
      }
    }
  });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(MoveRows);

void MoveRows(const KvCacheView& cache, const KvRowMove& move, const float* cosines,
              const float* sines) {
  HWY_DYNAMIC_DISPATCH(MoveRows)(cache, move, cosines, sines);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
