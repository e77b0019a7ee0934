#include "ops/vector.h"

#include <algorithm>
#include <limits>

#include "core/numeric.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/vector.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

void Add(const float* addend, size_t size, float* accumulator) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto sum = hn::Add(hn::LoadU(d, accumulator + i), hn::LoadU(d, addend + i));
    hn::StoreU(sum, d, accumulator + i);
  }
  if (i < size) {
    const size_t rest = size - i;
    const auto sum = hn::Add(hn::LoadN(d, accumulator + i, rest), hn::LoadN(d, addend + i, rest));
    hn::StoreN(sum, d, accumulator + i, rest);
  }
}

void MultiplyBySigmoid(const float* gates, size_t size, float* values) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < size; i += lanes) {
    const size_t rest = std::min(lanes, size - i);
    const auto gate = rest == lanes ? hn::LoadU(d, gates + i) : hn::LoadN(d, gates + i, rest);
    const auto value = rest == lanes ? hn::LoadU(d, values + i) : hn::LoadN(d, values + i, rest);
    // If exp overflows, the quotient is 0, which is the limit.
    const auto gated = hn::Div(value, hn::Add(hn::Set(d, 1.0f), Exp(d, hn::Neg(gate))));
    if (rest == lanes) {
      hn::StoreU(gated, d, values + i);
    } else {
      hn::StoreN(gated, d, values + i, rest);
    }
  }
}

// The largest value that is not NaN; -infinity if there is none.
float LargestNumber(const float* values, size_t size) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto lowest = hn::Neg(hn::Inf(d));
  // A comparison with NaN is false, so NaN never replaces anything.
  const auto larger = [](auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Gt(b, a), b, a); };
  auto largest0 = lowest, largest1 = lowest;
  size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    largest0 = larger(largest0, hn::LoadU(d, values + i));
    largest1 = larger(largest1, hn::LoadU(d, values + i + lanes));
  }
  for (; i < size; i += lanes) {
    largest0 = larger(largest0, hn::LoadNOr(lowest, d, values + i, size - i));
  }
  return hn::ReduceMax(d, larger(largest0, largest1));
}

size_t ArgMax(const float* values, size_t size) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  // Finds the block with the largest value first, so that only one block is searched for the index.
  constexpr size_t kBlock = 1024;
  float largest = -std::numeric_limits<float>::infinity();
  size_t i = 0;
  for (size_t block = 0; block < size; block += kBlock) {
    const float candidate = LargestNumber(values + block, std::min(kBlock, size - block));
    if (candidate > largest) {
      largest = candidate;
      i = block;
    }
  }
  const auto wanted = hn::Set(d, largest);
  for (; i + lanes <= size; i += lanes) {
    const intptr_t lane = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, values + i), wanted));
    if (lane >= 0) return i + static_cast<size_t>(lane);
  }
  for (; i < size; ++i) {
    if (values[i] == largest) return i;
  }
  return 0;
}

double SumOfExps(const float* values, size_t size, float largest) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto shift = hn::Set(d, largest);
  // A float adds the terms of one block without a large error; blocks are added in double, of which
  // ARMv7 has no vectors.
  constexpr size_t kBlock = 1024;
  double total = 0.0;
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, size);
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      sum0 = hn::Add(sum0, Exp(d, hn::Sub(hn::LoadU(d, values + i), shift)));
      sum1 = hn::Add(sum1, Exp(d, hn::Sub(hn::LoadU(d, values + i + lanes), shift)));
    }
    for (; i < end; i += lanes) {
      // Lanes after the end have a term of 0.
      const auto rest = hn::LoadNOr(hn::Neg(hn::Inf(d)), d, values + i, end - i);
      sum0 = hn::Add(sum0, Exp(d, hn::Sub(rest, shift)));
    }
    total += hn::ReduceSum(d, hn::Add(sum0, sum1));
  }
  return total;
}

void DequantizeQc8w(const int8_t* row, float scale, size_t size, float* output) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const hn::Rebind<int8_t, decltype(d)> di8;
  const size_t lanes = hn::Lanes(d);
  const auto scales = hn::Set(d, scale);
  const auto dequantize = [=](auto bytes) HWY_ATTR {
    return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di32, bytes)), scales);
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(dequantize(hn::LoadU(di8, row + i)), d, output + i);
  }
  if (i < size) {
    hn::StoreN(dequantize(hn::LoadN(di8, row + i, size - i)), d, output + i, size - i);
  }
}

// Converts values of one block, or the rest of the last one; `size` must be even.
void DequantizeNibbles(const uint8_t* bytes, float scale, size_t size, float* output) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di32;
  const hn::Rebind<uint8_t, decltype(d)> du8;
  const size_t lanes = hn::Lanes(d);
  const auto scales = hn::Set(d, scale);
  const auto dequantize = [=](auto nibbles) HWY_ATTR {
    const auto centred = hn::Sub(hn::PromoteTo(di32, nibbles), hn::Set(di32, 8));
    return hn::Mul(hn::ConvertTo(d, centred), scales);
  };
  const size_t num_bytes = size / 2;
  size_t i = 0;
  for (; i + lanes <= num_bytes; i += lanes) {
    const auto pairs = hn::LoadU(du8, bytes + i);
    const auto even = dequantize(hn::And(pairs, hn::Set(du8, uint8_t{0x0f})));
    const auto odd = dequantize(hn::ShiftRight<4>(pairs));
    hn::StoreInterleaved2(even, odd, d, output + 2 * i);
  }
  for (; i < num_bytes; ++i) {
    output[2 * i] = scale * static_cast<float>((bytes[i] & 0x0f) - 8);
    output[2 * i + 1] = scale * static_cast<float>((bytes[i] >> 4) - 8);
  }
}

void DequantizeQb4w(const uint8_t* row, const uint16_t* scales, size_t block_size, size_t size,
                    float* output) {
  for (size_t begin = 0, block = 0; begin < size; begin += block_size, ++block) {
    const size_t count = std::min(block_size, size - begin);
    DequantizeNibbles(row + begin / 2, Bf16ToFloat(scales[block]), count, output + begin);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Add);
HWY_EXPORT(MultiplyBySigmoid);
HWY_EXPORT(ArgMax);
HWY_EXPORT(SumOfExps);
HWY_EXPORT(DequantizeQc8w);
HWY_EXPORT(DequantizeQb4w);

void Add(const float* addend, size_t size, float* accumulator) {
  HWY_DYNAMIC_DISPATCH(Add)(addend, size, accumulator);
}

void MultiplyBySigmoid(const float* gates, size_t size, float* values) {
  HWY_DYNAMIC_DISPATCH(MultiplyBySigmoid)(gates, size, values);
}

size_t ArgMax(const float* values, size_t size) {
  return HWY_DYNAMIC_DISPATCH(ArgMax)(values, size);
}

double SumOfExps(const float* values, size_t size, float largest) {
  return HWY_DYNAMIC_DISPATCH(SumOfExps)(values, size, largest);
}

void DequantizeQc8w(const int8_t* row, float scale, size_t size, float* output) {
  HWY_DYNAMIC_DISPATCH(DequantizeQc8w)(row, scale, size, output);
}

void DequantizeQb4w(const uint8_t* row, const uint16_t* scales, size_t block_size, size_t size,
                    float* output) {
  HWY_DYNAMIC_DISPATCH(DequantizeQb4w)(row, scales, block_size, size, output);
}

void ToF16(const float* values, size_t size, uint16_t* output) {
  for (size_t i = 0; i < size; ++i) {
    output[i] = hwy::BitCastScalar<uint16_t>(hwy::F16FromF32(values[i]));
  }
}

void FromF16(const uint16_t* values, size_t size, float* output) {
  for (size_t i = 0; i < size; ++i) {
    output[i] = hwy::F32FromF16(hwy::BitCastScalar<hwy::float16_t>(values[i]));
  }
}

}  // namespace cria::ops
#endif  // HWY_ONCE
