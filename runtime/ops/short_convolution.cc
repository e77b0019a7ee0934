#include "ops/short_convolution.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/short_convolution.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

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

// The rows of one vector of channels.
template <bool kIsPart>
HWY_INLINE void ConvolveChannels(const Channels<kIsPart>& channels,
                                 const ShortConvolutionTaps& taps, const ConvolutionRows& rows,
                                 size_t channel) {
  for (size_t row = 0; row < rows.num_rows; ++row) {
    const size_t offset = row * rows.input_stride + channel;
    if (rows.input_gates != nullptr) {
      const auto gate = channels.Load(rows.input_gates + offset);
      channels.Store(hn::Mul(channels.Load(rows.input + offset), gate), rows.input + offset);
    }
    auto sum =
        SumOverTaps(channels, taps, rows.earlier, rows.input, rows.input_stride, row, channel);
    float* const output = rows.output + row * rows.output_stride + channel;
    if (rows.multiplies_output) sum = hn::Mul(channels.Load(output), sum);
    channels.Store(sum, output);
  }
}

void Convolution(const ShortConvolutionTaps& taps, const ConvolutionRows& rows, size_t begin,
                 size_t end) {
  const size_t lanes = hn::Lanes(ChannelTag());
  size_t channel = begin;
  for (; channel + lanes <= end; channel += lanes) {
    ConvolveChannels(Channels<false>(), taps, rows, channel);
  }
  if (channel < end) ConvolveChannels(Channels<true>{end - channel}, taps, rows, channel);
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(Convolution);

void Convolution(const ShortConvolutionTaps& taps, const ConvolutionRows& rows, size_t begin,
                 size_t end) {
  HWY_DYNAMIC_DISPATCH(Convolution)(taps, rows, begin, end);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
