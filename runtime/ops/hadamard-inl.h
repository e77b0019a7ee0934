// Multiplying by Hadamard's matrix with sums and differences, compiled once per instruction set.

#if defined(CRIA_OPS_HADAMARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRIA_OPS_HADAMARD_INL_H_
#undef CRIA_OPS_HADAMARD_INL_H_
#else
#define CRIA_OPS_HADAMARD_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The size of the matrix for rows of `size`: the largest power of two that divides it.
constexpr size_t HadamardPart(size_t size) { return size & (~size + 1); }

// Sums and differences are multiplied by this, so that the matrix is orthogonal.
inline float HadamardFactor(size_t size) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(HadamardPart(size))));
}

// Each pair (a, b) becomes (a + b, a - b), for pairs that are `half` elements apart.
HWY_INLINE void AddAndSubtract(float* HWY_RESTRICT first, size_t half) {
  float* HWY_RESTRICT second = first + half;
  size_t i = 0;
  const auto run = [&](auto d) HWY_ATTR {
    for (; i + hn::MaxLanes(d) <= half; i += hn::MaxLanes(d)) {
      const auto a = hn::LoadU(d, first + i);
      const auto b = hn::LoadU(d, second + i);
      hn::StoreU(hn::Add(a, b), d, first + i);
      hn::StoreU(hn::Sub(a, b), d, second + i);
    }
  };
  run(hn::ScalableTag<float>());
  run(hn::CappedTag<float, 4>());
  for (; i < half; ++i) {
    const float a = first[i];
    const float b = second[i];
    first[i] = a + b;
    second[i] = a - b;
  }
}

// AddAndSubtract for pairs that are 1 apart, then for those that are 2 apart, in every four
// elements.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V AddAndSubtractInFours(D d, V v) {
  const hn::RepartitionToWide<hn::RebindToUnsigned<D>> wide;  // ARMv7 has no vectors of doubles.
  V swapped = hn::Reverse2(d, v);
  v = hn::OddEven(hn::Sub(swapped, v), hn::Add(v, swapped));
  swapped = hn::Shuffle1032(v);
  const auto differences = hn::BitCast(wide, hn::Sub(swapped, v));
  return hn::BitCast(d, hn::OddEven(differences, hn::BitCast(wide, hn::Add(v, swapped))));
}

// HadamardTransform of one row, but for the factor.
inline void HadamardSums(float* HWY_RESTRICT row, size_t size) {
  const size_t part = HadamardPart(size);
  size_t half = 1;
  if (part >= 4) {
    size_t i = 0;
    const auto run = [&](auto d) HWY_ATTR {
      for (; i + hn::MaxLanes(d) <= size; i += hn::MaxLanes(d)) {
        hn::StoreU(AddAndSubtractInFours(d, hn::LoadU(d, row + i)), d, row + i);
      }
    };
    run(hn::ScalableTag<float>());
    run(hn::CappedTag<float, 4>());
    half = 4;
  }
  for (; half < part; half *= 2) {
    for (size_t i = 0; i < size; i += 2 * half) AddAndSubtract(row + i, half);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CRIA_OPS_HADAMARD_INL_H_
