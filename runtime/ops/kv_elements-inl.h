// The element type of keys and values for each KvType, compiled once per instruction set. Half
// precision (IEEE 754 binary16) is only a storage type: arithmetic is in float.

#if defined(CRIA_OPS_KV_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_KV_ELEMENTS_INL_H_
#undef CRIA_OPS_KV_ELEMENTS_INL_H_
#else
#define CRIA_OPS_KV_ELEMENTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/hadamard-inl.h"
#include "ops/kv_cache_view.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls `run.template operator()<T>()` with the type of the elements.
template <typename Run>
HWY_INLINE void WithKvElement(KvType type, const Run& run) {
  switch (type) {
    case KvType::kF32:
      return run.template operator()<float>();
    case KvType::kF16:
      return run.template operator()<hwy::float16_t>();
    case KvType::kInt8:
      return run.template operator()<int8_t>();
  }
}

// A vector of elements as floats; for int8, without the scale.
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloats(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloats(D d, const hwy::float16_t* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), p));
}
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloats(D d, const int8_t* p) {
  const hn::RebindToSigned<D> di32;
  return hn::ConvertTo(d, hn::PromoteTo(di32, hn::LoadU(hn::Rebind<int8_t, D>(), p)));
}

// Loads the first `count` elements, which are fewer than a vector; the other lanes are 0.
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloatsN(D d, const float* p, size_t count) {
  return hn::LoadN(d, p, count);
}
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloatsN(D d, const hwy::float16_t* p, size_t count) {
  return hn::PromoteTo(d, hn::LoadN(hn::Rebind<hwy::float16_t, D>(), p, count));
}
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloatsN(D d, const int8_t* p, size_t count) {
  const hn::RebindToSigned<D> di32;
  return hn::ConvertTo(d, hn::PromoteTo(di32, hn::LoadN(hn::Rebind<int8_t, D>(), p, count)));
}

// Stores one row and returns its scale; only int8 has one.
inline float StoreRow(const float* HWY_RESTRICT input, size_t size, float* HWY_RESTRICT output) {
  std::memcpy(output, input, size * sizeof(float));
  return 1.0f;
}

// Rounds to nearest, ties to even. Values above the largest half are stored as the largest half,
// because an infinite score would make the softmax NaN.
inline float StoreRow(const float* HWY_RESTRICT input, size_t size,
                      hwy::float16_t* HWY_RESTRICT output) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  const size_t lanes = hn::Lanes(d);
  const auto largest = hn::Set(d, 65504.0f);
  const auto demote = [=](auto v) HWY_ATTR {
    const auto is_too_large = hn::Gt(hn::Abs(v), largest);
    return hn::DemoteTo(d16, hn::IfThenElse(is_too_large, hn::CopySign(largest, v), v));
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(demote(hn::LoadU(d, input + i)), d16, output + i);
  }
  if (i < size) hn::StoreN(demote(hn::LoadN(d, input + i, size - i)), d16, output + i, size - i);
  return 1.0f;
}

inline float StoreRow(const float* HWY_RESTRICT input, size_t size, int8_t* HWY_RESTRICT output) {
  return QuantizeSymmetric(input, size, output);
}

// Stores a key or a query as StoreRow does, but in int8, it is multiplied by Hadamard's matrix
// before.
template <typename T>
HWY_INLINE float StoreSpreadRow(const float* HWY_RESTRICT input, size_t size,
                                T* HWY_RESTRICT output) {
  if constexpr (sizeof(T) == 1) {
    float spread[kMaxHeadDim];
    std::memcpy(spread, input, size * sizeof(float));
    HadamardSums(spread, size);
    return StoreRow(spread, size, output) * HadamardFactor(size);
  } else {
    return StoreRow(input, size, output);
  }
}

// Restores the key that StoreSpreadRow stored; only int8 has a scale.
template <typename T>
HWY_INLINE void LoadSpreadRow(const T* HWY_RESTRICT input, float scale, size_t size,
                              float* HWY_RESTRICT output) {
  if constexpr (sizeof(T) == 1) {
    scale *= HadamardFactor(size);
    for (size_t j = 0; j < size; ++j) output[j] = scale * static_cast<float>(input[j]);
    HadamardSums(output, size);
  } else {
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    size_t j = 0;
    for (; j + lanes <= size; j += lanes) hn::StoreU(LoadFloats(d, input + j), d, output + j);
    if (j < size) hn::StoreN(LoadFloatsN(d, input + j, size - j), d, output + j, size - j);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_KV_ELEMENTS_INL_H_
