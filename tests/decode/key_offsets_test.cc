#include "decode/key_offsets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace cria {
namespace {

TEST(KeyOffsetsTest, OnlyInt8KeysWithABiasThatNoNormFollowsHaveThem) {
  EXPECT_TRUE(HasKeyOffsets({.qkv_bias = true}, KvType::kInt8));
  EXPECT_FALSE(HasKeyOffsets({.qkv_bias = true}, KvType::kF32));
  EXPECT_FALSE(HasKeyOffsets({.qkv_bias = true}, KvType::kF16));
  EXPECT_FALSE(HasKeyOffsets({}, KvType::kInt8));
  EXPECT_FALSE(HasKeyOffsets({.qkv_bias = true, .qk_norm = true}, KvType::kInt8));
  EXPECT_FALSE(HasKeyOffsets({.qkv_bias = true, .joint_qk_norm = true}, KvType::kInt8));
  EXPECT_FALSE(HasKeyOffsets({.qkv_bias = true, .attn_logit_softcapping = 50}, KvType::kInt8));
}

TEST(KeyOffsetsTest, AreTheMeanOfTheRotatedBias) {
  constexpr size_t kPositions = 100;
  const std::vector<double> frequencies = {1.0, 0.05, 0.001};
  const size_t pairs = frequencies.size();
  std::vector<float> cosines, sines;
  for (size_t position = 0; position < kPositions; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  // Two heads, [heads][2 * pairs].
  const std::vector<float> bias = {1, 20, 100, -2, 10, 50, -100, 0, 1, 0, 3, 4};
  std::vector<float> offsets(bias.size());
  FillKeyOffsets(MeanRotationOf(cosines, sines, pairs), 2 * pairs, bias, offsets);
  for (size_t head = 0; head < bias.size(); head += 2 * pairs) {
    for (size_t i = 0; i < pairs; ++i) {
      const double a = bias[head + i], b = bias[head + pairs + i];
      double first = 0, second = 0, farthest = 0;
      for (size_t position = 0; position < kPositions; ++position) {
        const double cosine = cosines[position * pairs + i], sine = sines[position * pairs + i];
        first += (a * cosine - b * sine) / kPositions;
        second += (a * sine + b * cosine) / kPositions;
        farthest =
            std::max(farthest, std::hypot(a * cosine - b * sine - offsets[head + i],
                                          a * sine + b * cosine - offsets[head + pairs + i]));
      }
      EXPECT_NEAR(offsets[head + i], first, 1e-4);
      EXPECT_NEAR(offsets[head + pairs + i], second, 1e-4);
      // Of a pair that turns by 0.1, next to nothing is left; of one that turns often, all.
      if (i == 2) {
        EXPECT_LT(farthest, 0.051 * std::hypot(a, b));
      }
      if (i == 0) {
        EXPECT_LT(std::hypot(first, second), 0.03 * std::hypot(a, b));
      }
    }
  }
}

TEST(KeyOffsetsTest, ChannelsThatAreNotRotatedAreThoseOfTheBias) {
  const std::vector<float> cosines = {1, 0};
  const std::vector<float> sines = {0, 1};
  const std::vector<float> bias = {2, 4, 5, 6, 20, 40, 50, 60};  // Two heads of 4.
  std::vector<float> offsets(bias.size());
  FillKeyOffsets(MeanRotationOf(cosines, sines, 1), 4, bias, offsets);
  EXPECT_EQ(offsets, (std::vector<float>{-1, 3, 5, 6, -10, 30, 50, 60}));
  FillKeyOffsets({}, 4, bias, offsets);
  EXPECT_EQ(offsets, bias);
}

}  // namespace
}  // namespace cria
