#include "ops/kv_cache_shift.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kv_cache_shift.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/key_offsets-inl.h"
#include "ops/kv_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

// ApplyRope with the negative angle, from elements to floats.
template <typename T>
HWY_INLINE void TurnBack(const T* key, size_t head_dim, size_t rotary_dim,
                         const float* HWY_RESTRICT cosines, const float* HWY_RESTRICT sines,
                         float* HWY_RESTRICT output) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t half = rotary_dim / 2;
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
  for (i = rotary_dim; i < head_dim; i += lanes) {
    const size_t rest = std::min(lanes, head_dim - i);
    hn::StoreN(LoadFloatsN(d, key + i, rest), d, output + i, rest);
  }
}

// Keys in int8, which are stored without their offsets if they have any.
void TurnInt8Keys(const KvCacheView& cache, const KvRowMove& move, const float* cosines,
                  const float* sines) {
  const size_t head_dim = cache.head_dim;
  const size_t rotary_dim = cache.rotary_channels();
  const bool has_offsets = cache.key_offsets.middles != nullptr;
  const size_t old_position = move.position + move.distance;
  std::optional<PageOffsets> old_offsets, new_offsets;
  float key[kMaxHeadDim] = {}, turned[kMaxHeadDim] = {};
  for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
    const size_t source = head * cache.num_rows() + move.source_row;
    const size_t target = head * cache.num_rows() + move.target_row;
    auto* const keys = static_cast<int8_t*>(cache.keys);
    if (has_offsets) {
      old_offsets.emplace(cache.key_offsets, head, head_dim, rotary_dim, old_position);
      new_offsets.emplace(cache.key_offsets, head, head_dim, rotary_dim, move.position);
    }
    for (size_t i = 0; i < move.num_rows; ++i) {
      LoadSpreadRow(keys + (source + i) * head_dim, cache.key_scales[source + i], head_dim, key);
      if (has_offsets) old_offsets->Add(1.0f, old_position + i, head_dim, key);
      TurnBack(key, head_dim, rotary_dim, cosines, sines, turned);
      if (has_offsets) new_offsets->Add(-1.0f, move.position + i, head_dim, turned);
      cache.key_scales[target + i] =
          StoreSpreadRow(turned, head_dim, keys + (target + i) * head_dim);
    }
  }
}

void TurnKeys(const KvCacheView& cache, const KvRowMove& move, const float* cosines,
              const float* sines) {
  const size_t head_dim = cache.head_dim;
  WithKvElement(cache.type, [&]<typename T>() HWY_ATTR {
    if constexpr (std::is_same_v<T, int8_t>) {
      TurnInt8Keys(cache, move, cosines, sines);
    } else {
      float turned[kMaxHeadDim] = {};
      for (size_t head = 0; head < cache.num_key_value_heads; ++head) {
        const size_t source = head * cache.num_rows() + move.source_row;
        const size_t target = head * cache.num_rows() + move.target_row;
        T* keys = static_cast<T*>(cache.keys);
        for (size_t i = 0; i < move.num_rows; ++i) {
          TurnBack(keys + (source + i) * head_dim, head_dim, cache.rotary_channels(), cosines,
                   sines, turned);
          StoreRow(turned, head_dim, keys + (target + i) * head_dim);
        }
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
  } else {
    CopyRows(cache, move, cache.keys, cache.key_scales);
  }
  if (move.source_row != move.target_row) {
    CopyRows(cache, move, cache.values, cache.value_scales);
  }
}

}  // namespace cria::ops
#endif  // HWY_ONCE
