#include "ops/short_convolution.h"

#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/short_convolution.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The rows of one vector of channels, or of the part of one that is left at the end.
template <typename D, typename Load, typename Store>
void ConvolveChannels(D d, const ShortConvolutionTaps& taps, const ShortConvolutionRows& rows,
                      size_t channel, const Load& load, const Store& store) {
  const size_t channels = taps.channels;
  const size_t stride = 3 * channels;
  const size_t num_earlier = taps.num_taps - 1;
  for (size_t row = 0; row < rows.num_rows; ++row) {
    float* const gates = rows.rows + row * stride + channel;
    store(hn::Mul(load(gates), load(gates + 2 * channels)), gates);
    auto sum = taps.bias == nullptr ? hn::Zero(d) : load(taps.bias + channel);
    for (size_t tap = 0; tap < taps.num_taps; ++tap) {
      // The tap's position is `row + tap - num_earlier`.
      const float* const input = row + tap < num_earlier
                                     ? rows.earlier + (row + tap) * channels
                                     : rows.rows + (row + tap - num_earlier) * stride;
      sum = hn::MulAdd(load(taps.weights + tap * channels + channel), load(input + channel), sum);
    }
    store(hn::Mul(load(gates + channels), sum), gates + channels);
  }
}

void ShortConvolution(const ShortConvolutionTaps& taps, const ShortConvolutionRows& rows,
                      size_t begin, size_t end) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t channel = begin;
  for (; channel + lanes <= end; channel += lanes) {
    ConvolveChannels(
        d, taps, rows, channel, [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); },
        [d](auto value, float* to) HWY_ATTR { hn::StoreU(value, d, to); });
  }
  const size_t rest = end - channel;
  if (rest == 0) return;
  ConvolveChannels(
      d, taps, rows, channel,
      [d, rest](const float* from) HWY_ATTR { return hn::LoadN(d, from, rest); },
      [d, rest](auto value, float* to) HWY_ATTR { hn::StoreN(value, d, to, rest); });
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(ShortConvolution);

void ShortConvolution(const ShortConvolutionTaps& taps, const ShortConvolutionRows& rows,
                      size_t begin, size_t end) {
  HWY_DYNAMIC_DISPATCH(ShortConvolution)(taps, rows, begin, end);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
