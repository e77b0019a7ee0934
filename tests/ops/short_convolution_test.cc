#include "ops/short_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

constexpr size_t kConvolvedRows = 5;

TEST(ShortConvolutionTest, MatchesReferenceAtEverySize) {
  for (const size_t channels : kTrickySizes) {
    for (const size_t num_taps : {1, 3, 7}) {
      for (const bool has_bias : {false, true}) {
        const std::vector<float> weights = RandomFloats(num_taps * channels, 1);
        const std::vector<float> bias = RandomFloats(channels, 2);
        const std::vector<float> earlier = RandomFloats((num_taps - 1) * channels, 3);
        const std::vector<float> rows = RandomFloats(kConvolvedRows * 3 * channels, 4);
        const ShortConvolutionTaps taps = {.num_taps = num_taps,
                                           .channels = channels,
                                           .weights = weights.data(),
                                           .bias = has_bias ? bias.data() : nullptr};
        std::vector<float> computed = rows;
        ShortConvolution(taps, {computed.data(), kConvolvedRows, earlier.data()}, 0, channels);
        const std::vector<double> expected =
            reference::ShortConvolution(taps, rows, kConvolvedRows, earlier);
        for (size_t row = 0; row < kConvolvedRows; ++row) {
          for (size_t i = 0; i < channels; ++i) {
            const float* const projected = &rows[row * 3 * channels + i];
            ASSERT_EQ(computed[row * 3 * channels + i], projected[0] * projected[2 * channels]);
            ASSERT_NEAR(computed[(row * 3 + 1) * channels + i], expected[row * channels + i], 1e-5)
                << channels << " channels, " << num_taps << " taps, row " << row << ", channel "
                << i;
          }
        }
      }
    }
  }
}

TEST(ShortConvolutionTest, PlainMatchesReferenceAtEverySize) {
  for (const size_t channels : kTrickySizes) {
    for (const size_t num_taps : {1, 2, 4}) {
      const std::vector<float> weights = RandomFloats(num_taps * channels, 1);
      const std::vector<float> bias = RandomFloats(channels, 2);
      const std::vector<float> earlier = RandomFloats((num_taps - 1) * channels, 3);
      std::vector<float> rows = RandomFloats(kConvolvedRows * channels, 4);
      const ShortConvolutionTaps taps = {num_taps, channels, weights.data(),
                                         num_taps == 2 ? bias.data() : nullptr};
      std::vector<float> computed(kConvolvedRows * channels);
      Convolution(taps,
                  {.input = rows.data(),
                   .input_stride = channels,
                   .output = computed.data(),
                   .output_stride = channels,
                   .num_rows = kConvolvedRows,
                   .earlier = earlier.data()},
                  0, channels);
      const std::vector<double> expected =
          reference::Convolution(taps, rows, kConvolvedRows, earlier);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(computed[i], expected[i], 1e-5) << channels << " channels, number " << i;
      }
    }
  }
}

TEST(ShortConvolutionTest, PlainInPartsIsTheSameBits) {
  constexpr size_t kChannels = 37;
  constexpr size_t kTaps = 3;
  constexpr size_t kStride = 41;
  const std::vector<float> weights = RandomFloats(kTaps * kChannels, 5);
  const std::vector<float> earlier = RandomFloats((kTaps - 1) * kChannels, 6);
  std::vector<float> rows = RandomFloats(kConvolvedRows * kStride, 7);
  const ShortConvolutionTaps taps = {kTaps, kChannels, weights.data(), nullptr};
  const auto run = [&](float* input, const float* before, size_t num_rows, float* output,
                       size_t begin, size_t end) {
    Convolution(taps,
                {.input = input,
                 .input_stride = kStride,
                 .output = output,
                 .output_stride = kChannels,
                 .num_rows = num_rows,
                 .earlier = before},
                begin, end);
  };
  std::vector<float> whole(kConvolvedRows * kChannels);
  run(rows.data(), earlier.data(), kConvolvedRows, whole.data(), 0, kChannels);
  std::vector<float> in_parts(whole.size());
  std::vector<float> before = earlier;
  for (size_t row = 0; row < kConvolvedRows; ++row) {
    for (const auto& [begin, end] : {std::pair<size_t, size_t>{16, 37}, {0, 3}, {3, 16}}) {
      run(&rows[row * kStride], before.data(), 1, &in_parts[row * kChannels], begin, end);
    }
    std::ranges::rotate(before, before.begin() + kChannels);
    std::copy_n(&rows[row * kStride], kChannels, before.end() - kChannels);
  }
  EXPECT_EQ(in_parts, whole);
}

// Threads compute parts of the channels, and sequences are read in parts.
TEST(ShortConvolutionTest, PartsOfChannelsAndRowsAreTheSameBits) {
  constexpr size_t kChannels = 37;
  constexpr size_t kTaps = 4;
  const std::vector<float> weights = RandomFloats(kTaps * kChannels, 5);
  const std::vector<float> earlier = RandomFloats((kTaps - 1) * kChannels, 6);
  const std::vector<float> rows = RandomFloats(kConvolvedRows * 3 * kChannels, 7);
  const ShortConvolutionTaps taps = {kTaps, kChannels, weights.data(), nullptr};
  std::vector<float> whole = rows;
  ShortConvolution(taps, {whole.data(), kConvolvedRows, earlier.data()}, 0, kChannels);

  std::vector<float> in_channels = rows;
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{16, 37}, {0, 3}, {3, 16}}) {
    ShortConvolution(taps, {in_channels.data(), kConvolvedRows, earlier.data()}, begin, end);
  }
  EXPECT_EQ(in_channels, whole);

  std::vector<float> one_by_one = rows;
  std::vector<float> before = earlier;
  for (size_t row = 0; row < kConvolvedRows; ++row) {
    float* const projected = &one_by_one[row * 3 * kChannels];
    ShortConvolution(taps, {projected, 1, before.data()}, 0, kChannels);
    std::ranges::rotate(before, before.begin() + kChannels);
    std::copy_n(projected, kChannels, before.end() - kChannels);
  }
  EXPECT_EQ(one_by_one, whole);
}

}  // namespace
}  // namespace cria::ops
