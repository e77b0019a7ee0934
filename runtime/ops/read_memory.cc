#include "ops/read_memory.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/read_memory.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> LoadWords(D d, const uint8_t* bytes) {
  return hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, D>(), bytes));
}

uint64_t SumOfWords(const uint8_t* bytes, size_t size) {
  constexpr size_t kLineBytes = 64;
  // With this, one core reads a tenth faster than with the processor's own prefetching. A prefetch
  // after the end does nothing.
  constexpr size_t kBytesAhead = 512;
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d8);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  size_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    for (size_t line = 0; line < 4 * lanes; line += kLineBytes) {
      hwy::Prefetch(bytes + i + kBytesAhead + line);
    }
    sum0 = hn::Add(sum0, LoadWords(d, bytes + i));
    sum1 = hn::Add(sum1, LoadWords(d, bytes + i + lanes));
    sum2 = hn::Add(sum2, LoadWords(d, bytes + i + 2 * lanes));
    sum3 = hn::Add(sum3, LoadWords(d, bytes + i + 3 * lanes));
  }
  for (; i < size; i += lanes) {
    sum0 = hn::Add(sum0, hn::BitCast(d, hn::LoadN(d8, bytes + i, size - i)));
  }
  return hn::ReduceSum(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(SumOfWords);

uint64_t SumOfWords(std::span<const std::byte> bytes) {
  return HWY_DYNAMIC_DISPATCH(SumOfWords)(reinterpret_cast<const uint8_t*>(bytes.data()),
                                          bytes.size());
}

}  // namespace cria::ops
#endif  // HWY_ONCE
