#include "decode/key_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
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

// Without room for turned pairs, every pair has a line.
std::span<ops::TurnedPair> NoPairs() { return {}; }

// How far the bias of one pair, turned by rope, is from its offset at most, of its length.
double FarthestFromLine(double inverse_frequency) {
  const std::vector<float> bias = {3.0f, 4.0f};
  std::vector<float> middles(2), slopes(2);
  FillKeyOffsets(std::vector{TurnLine(inverse_frequency)}, 2, bias, middles, slopes, NoPairs());
  double farthest = 0.0;
  for (size_t position = 0; position < kKvPageTokens; ++position) {
    const double angle = static_cast<double>(position) * inverse_frequency;
    const double row = static_cast<double>(position) - 31.5;
    const double a = bias[0] * std::cos(angle) - bias[1] * std::sin(angle);
    const double b = bias[0] * std::sin(angle) + bias[1] * std::cos(angle);
    farthest = std::max(
        farthest, std::hypot(a - middles[0] - row * slopes[0], b - middles[1] - row * slopes[1]));
  }
  return farthest / 5.0;
}

TEST(KeyOffsetsTest, AreNearTheTurnedBias) {
  // A line is as far from an arc of the angle x as x^2 / 12 at its ends.
  EXPECT_LT(FarthestFromLine(0.0), 1e-6);
  EXPECT_LT(FarthestFromLine(1e-3), 4e-4);
  EXPECT_LT(FarthestFromLine(1e-2), 4e-2);
  EXPECT_GT(FarthestFromLine(1e-2), 1e-2);
  // A pair that turns often has next to no offset.
  EXPECT_NEAR(FarthestFromLine(1.0), 1.0, 0.1);
}

TEST(KeyOffsetsTest, HaveTheLeastSquaredDistance) {
  const std::vector<double> frequencies = {0.05, 0.002};
  const std::vector<float> bias = {1, 20, -2, 10, 50, -100, 0, 1};  // Two heads of 4.
  std::vector<float> middles(8), slopes(8);
  FillKeyOffsets(std::vector{TurnLine(0.05), TurnLine(0.002)}, 4, bias, middles, slopes, NoPairs());
  for (size_t at : {0, 1, 4, 5}) {
    // What is left is orthogonal to a constant and to a line.
    double sums[4] = {};
    for (size_t position = 0; position < kKvPageTokens; ++position) {
      const double angle = static_cast<double>(position) * frequencies[at % 4];
      const double row = static_cast<double>(position) - 31.5;
      const double a = bias[at] * std::cos(angle) - bias[at + 2] * std::sin(angle);
      const double b = bias[at] * std::sin(angle) + bias[at + 2] * std::cos(angle);
      const double left_a = a - middles[at] - row * slopes[at];
      const double left_b = b - middles[at + 2] - row * slopes[at + 2];
      sums[0] += left_a;
      sums[1] += left_b;
      sums[2] += row * left_a;
      sums[3] += row * left_b;
    }
    for (const double sum : sums) EXPECT_NEAR(sum, 0.0, 0.02) << at;
  }
}

TEST(KeyOffsetsTest, ChannelsThatAreNotTurnedAreThoseOfTheBias) {
  const std::vector<float> bias = {2, 4, 5, 6, 20, 40, 50, 60};  // Two heads of 4.
  std::vector<float> middles(8), slopes(8, 1.0f);
  FillKeyOffsets(std::vector{TurnLine(0.0)}, 4, bias, middles, slopes, NoPairs());
  EXPECT_EQ(middles, bias);
  EXPECT_EQ(slopes, std::vector<float>(8));
  FillKeyOffsets(std::vector{TurnLine(1.0)}, 4, bias, middles, slopes, NoPairs());
  for (const size_t at : {2, 3, 6, 7}) {
    EXPECT_EQ(middles[at], bias[at]);
    EXPECT_EQ(slopes[at], 0.0f);
  }
  FillKeyOffsets({}, 4, bias, middles, slopes, NoPairs());
  EXPECT_EQ(middles, bias);
}

TEST(KeyOffsetsTest, LargeBiasesThatTurnFastBecomeTurnedPairs) {
  constexpr size_t kMost = ops::KeyOffsets::kMaxTurnedPairs;
  // The first head has a large bias in the fast pair, the second one in the slow pair.
  const std::vector<TurnLine> lines = {TurnLine(1.0), TurnLine(1e-4)};
  const std::vector<float> bias = {30, 1, 40, 1, 1, 300, 1, 400};
  std::vector<float> middles(8), slopes(8);
  std::vector<ops::TurnedPair> pairs(2 * kMost);
  FillKeyOffsets(lines, 4, bias, middles, slopes, pairs);
  EXPECT_EQ(pairs[0].index, 0u);
  EXPECT_EQ(pairs[0].a, 30.0f);
  EXPECT_EQ(pairs[0].b, 40.0f);
  EXPECT_EQ(pairs[1].index, ops::TurnedPair::kNone);
  EXPECT_EQ(pairs[kMost].index, ops::TurnedPair::kNone);
  // What a turned pair subtracts, no line does.
  for (const size_t at : {0, 2}) EXPECT_EQ(std::fabs(middles[at]) + std::fabs(slopes[at]), 0.0f);
  EXPECT_NEAR(middles[5], 300.0f, 2.0f);
}

TEST(KeyOffsetsTest, TheFarthestPairsAreTurned) {
  constexpr size_t kMost = ops::KeyOffsets::kMaxTurnedPairs;
  constexpr size_t kHalf = kMost + 3;
  const std::vector<TurnLine> lines(kHalf, TurnLine(1.0));
  std::vector<float> bias(2 * kHalf, 0.0f);
  for (size_t i = 0; i < kHalf; ++i) bias[i] = 10.0f + static_cast<float>(i);
  std::vector<float> middles(bias.size()), slopes(bias.size());
  std::vector<ops::TurnedPair> pairs(kMost);
  FillKeyOffsets(lines, bias.size(), bias, middles, slopes, pairs);
  for (size_t i = 0; i < kMost; ++i) EXPECT_EQ(pairs[i].index, kHalf - 1 - i);
}

TEST(KeyOffsetsTest, RowTurnsAreThoseOfRope) {
  const std::vector<double> frequencies = {1.0, 0.01};
  std::vector<float> turns(4 * kKvPageTokens);
  FillRowTurns(frequencies, turns);
  for (size_t row = 0; row < kKvPageTokens; ++row) {
    for (size_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(row) * frequencies[i];
      EXPECT_FLOAT_EQ(turns[2 * i * kKvPageTokens + row], static_cast<float>(std::cos(angle)));
      EXPECT_FLOAT_EQ(turns[(2 * i + 1) * kKvPageTokens + row],
                      static_cast<float>(std::sin(angle)));
    }
  }
}

}  // namespace
}  // namespace cria
