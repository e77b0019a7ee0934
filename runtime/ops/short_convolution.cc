#include "ops/short_convolution.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/short_convolution.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using ChannelTag = hn::ScalableTag<float>;
using ChannelVector = hn::VFromD<ChannelTag>;

// Loads and stores as many channels as a vector has, or with kIsPart the first `count`.
template <bool kIsPart>
struct Channels {
  size_t count = 0;

  HWY_INLINE ChannelVector Load(const float* from) const {
    const ChannelTag d;
    if constexpr (kIsPart) return hn::LoadN(d, from, count);
    return hn::LoadU(d, from);
  }
  HWY_INLINE void Store(ChannelVector value, float* to) const {
    const ChannelTag d;
    if constexpr (kIsPart) {
      hn::StoreN(value, d, to, count);
    } else {
      hn::StoreU(value, d, to);
    }
  }
};

// The sum over the taps for one row. The inputs of earlier rows are `stride` apart, up to `input`,
// which is that of the row; those before the first row are `earlier`.
template <bool kIsPart>
HWY_INLINE ChannelVector SumOverTaps(const Channels<kIsPart>& channels,
                                     const ShortConvolutionTaps& taps, const float* earlier,
                                     const float* inputs, size_t stride, size_t row,
                                     size_t channel) {
  const size_t num_earlier = taps.num_taps - 1;
  auto sum = taps.bias == nullptr ? hn::Zero(ChannelTag()) : channels.Load(taps.bias + channel);
  for (size_t tap = 0; tap < taps.num_taps; ++tap) {
    // The tap's position is `row + tap - num_earlier`.
    const float* const input = row + tap < num_earlier
                                   ? earlier + (row + tap) * taps.channels
                                   : inputs + (row + tap - num_earlier) * stride;
    sum = hn::MulAdd(channels.Load(taps.weights + tap * taps.channels + channel),
                     channels.Load(input + channel), sum);
  }
  return sum;
}

// Calls `run(channels, channel)` for channels [begin, end), vector by vector.
template <typename Run>
HWY_INLINE void ForEachVector(size_t begin, size_t end, const Run& run) {
  const size_t lanes = hn::Lanes(ChannelTag());
  size_t channel = begin;
  for (; channel + lanes <= end; channel += lanes) run(Channels<false>(), channel);
  if (channel < end) run(Channels<true>{end - channel}, channel);
}

void ShortConvolution(const ShortConvolutionTaps& taps, const ShortConvolutionRows& rows,
                      size_t begin, size_t end) {
  const size_t stride = 3 * taps.channels;
  ForEachVector(begin, end, [&](const auto& channels, size_t channel) HWY_ATTR {
    for (size_t row = 0; row < rows.num_rows; ++row) {
      float* const gates = rows.rows + row * stride + channel;
      channels.Store(hn::Mul(channels.Load(gates), channels.Load(gates + 2 * taps.channels)),
                     gates);
      const auto sum = SumOverTaps(channels, taps, rows.earlier, rows.rows, stride, row, channel);
      float* const output = gates + taps.channels;
      channels.Store(hn::Mul(channels.Load(output), sum), output);
    }
  });
}

void SiluConvolution(const ShortConvolutionTaps& taps, const SiluConvolutionRows& rows,
                     size_t begin, size_t end) {
  ForEachVector(begin, end, [&](const auto& channels, size_t channel) HWY_ATTR {
    const ChannelTag d;
    const ChannelVector one = hn::Set(d, 1.0f);
    for (size_t row = 0; row < rows.num_rows; ++row) {
      const auto sum =
          SumOverTaps(channels, taps, rows.earlier, rows.input, rows.input_stride, row, channel);
      // If exp overflows, sum / infinity is 0, which is the limit of silu.
      const auto denominator = hn::Add(one, Exp(d, hn::Neg(sum)));
      channels.Store(hn::Div(sum, denominator), rows.output + row * rows.output_stride + channel);
    }
  });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(ShortConvolution);
HWY_EXPORT(SiluConvolution);

void ShortConvolution(const ShortConvolutionTaps& taps, const ShortConvolutionRows& rows,
                      size_t begin, size_t end) {
  HWY_DYNAMIC_DISPATCH(ShortConvolution)(taps, rows, begin, end);
}

void SiluConvolution(const ShortConvolutionTaps& taps, const SiluConvolutionRows& rows,
                     size_t begin, size_t end) {
  HWY_DYNAMIC_DISPATCH(SiluConvolution)(taps, rows, begin, end);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
