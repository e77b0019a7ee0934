#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace cria {
namespace {

ModelConfig Config(uint32_t head_dim, float theta) {
  ModelConfig config;
  config.head_dim = head_dim;
  config.layer_kinds[0].rope_theta = theta;
  return config;
}

std::vector<double> Frequencies(const ModelConfig& config, size_t context_tokens) {
  return RopeInverseFrequencies(config, config.layer_kinds[0], context_tokens);
}

ModelConfig Llama31(uint32_t head_dim) {
  ModelConfig config = Config(head_dim, 500000.0f);
  config.layer_kinds[0].rope_scaling = {RopeScaling::Type::kLlama3, 8.0f, 1.0f, 4.0f, 8192};
  return config;
}

// The rule as it is published: by wavelengths instead of periods.
double Llama3Frequency(double plain, const RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / plain;
  const double longest_kept =
      scaling.original_max_position_embeddings / double{scaling.high_freq_factor};
  const double shortest_divided =
      scaling.original_max_position_embeddings / double{scaling.low_freq_factor};
  if (wavelength < longest_kept) return plain;
  if (wavelength > shortest_divided) return plain / scaling.factor;
  const double share =
      (scaling.original_max_position_embeddings / wavelength - scaling.low_freq_factor) /
      (double{scaling.high_freq_factor} - scaling.low_freq_factor);
  return plain / scaling.factor + share * (plain - plain / scaling.factor);
}

TEST(RopeInverseFrequenciesTest, FallGeometricallyFromOne) {
  const std::vector<double> frequencies = Frequencies(Config(8, 10000.0f), 64);
  ASSERT_EQ(frequencies.size(), 4u);
  EXPECT_DOUBLE_EQ(frequencies[0], 1.0);
  EXPECT_NEAR(frequencies[1], 0.1, 1e-15);
  EXPECT_NEAR(frequencies[2], 0.01, 1e-15);
  EXPECT_NEAR(frequencies[3], 0.001, 1e-15);
  EXPECT_EQ(Frequencies(Config(2, 500000.0f), 64), std::vector<double>{1.0});
}

TEST(RopeInverseFrequenciesTest, LinearScalingDividesAll) {
  ModelConfig config = Config(16, 10000.0f);
  const std::vector<double> plain = Frequencies(config, 64);
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
  config.layer_kinds[0].rope_scaling.factor = 4.0f;
  const std::vector<double> scaled = Frequencies(config, 64);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4);
}

TEST(RopeInverseFrequenciesTest, Llama3ScalingDividesLongWavelengthsOnly) {
  for (const uint32_t head_dim : {64u, 128u}) {
    const ModelConfig config = Llama31(head_dim);
    ModelConfig unscaled = config;
    unscaled.layer_kinds[0].rope_scaling = {};
    const std::vector<double> plain = Frequencies(unscaled, 64);
    const std::vector<double> scaled = Frequencies(config, 64);
    size_t kept = 0;
    size_t divided = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_NEAR(scaled[i], Llama3Frequency(plain[i], config.layer_kinds[0].rope_scaling),
                  1e-15 * plain[i])
          << i;
      kept += scaled[i] == plain[i] ? 1 : 0;
      divided += scaled[i] == plain[i] / 8 ? 1 : 0;
      if (i > 0) {
        EXPECT_LT(scaled[i], scaled[i - 1]) << i;
      }
    }
    EXPECT_GT(kept, head_dim / 8);
    EXPECT_GT(divided, head_dim / 8);
    EXPECT_LT(kept + divided, plain.size()) << "some lie in the transition";
  }
}

TEST(RopeInverseFrequenciesTest, Llama3ScalingIsContinuousAtItsBounds) {
  // theta is chosen so that the second pair makes exactly `periods` turns in the trained context.
  const auto second_frequency = [](double periods) {
    ModelConfig config = Llama31(4);
    const double frequency = periods * 2 * std::numbers::pi / 8192;
    config.layer_kinds[0].rope_theta = static_cast<float>(1 / (frequency * frequency));
    const double plain = 1 / std::sqrt(double{config.layer_kinds[0].rope_theta});
    return Frequencies(config, 64)[1] / plain;
  };
  EXPECT_DOUBLE_EQ(second_frequency(0.99), 1.0 / 8);
  EXPECT_NEAR(second_frequency(1.0), 1.0 / 8, 1e-6);
  EXPECT_NEAR(second_frequency(1.0 + 1e-4), 1.0 / 8 + 1e-4 / 3 * 7 / 8, 1e-6);
  EXPECT_NEAR(second_frequency(2.5), 0.5 + 0.5 / 8, 1e-6);
  EXPECT_NEAR(second_frequency(4.0 - 1e-4), 1.0 - 1e-4 / 3 * 7 / 8, 1e-6);
  EXPECT_NEAR(second_frequency(4.0), 1.0, 1e-6);
  EXPECT_DOUBLE_EQ(second_frequency(4.01), 1.0);
}

// s = 2 and factor 3: 3 * 2 - 2 = 4, and 10 / 8 its exponent.
TEST(RopeInverseFrequenciesTest, DynamicScalingRaisesTheBaseBeyondTheTrainedLength) {
  ModelConfig config = Config(10, 10000.0f);
  config.max_position_embeddings = 512;
  const std::vector<double> plain = Frequencies(config, 1024);
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kDynamic;
  config.layer_kinds[0].rope_scaling.factor = 3.0f;
  EXPECT_EQ(Frequencies(config, 100), plain);
  EXPECT_EQ(Frequencies(config, 512), plain);
  const std::vector<double> scaled = Frequencies(config, 1024);
  const double base = 10000.0 * std::pow(4.0, 1.25);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(scaled[i], std::pow(base, -0.2 * static_cast<double>(i)), 1e-12) << i;
  }
}

// Head 16 and theta 10000: pair i turns 10^(-i/2) L / 2 pi times, so that for L = 32 the pair that
// turns twice is i = 0.8120 and the one that turns 0.1 times i = 3.4140.
TEST(RopeInverseFrequenciesTest, YarnDividesTheSlowPairsOnly) {
  ModelConfig config = Config(16, 10000.0f);
  const std::vector<double> plain = Frequencies(config, 64);
  config.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kYarn,
                                        .factor = 4.0f,
                                        .original_max_position_embeddings = 32,
                                        .beta_fast = 2.0f,
                                        .beta_slow = 0.1f};
  const auto shares = [&] {
    std::vector<double> frequencies = Frequencies(config, 64);
    for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= plain[i];
    return frequencies;
  };
  const auto expect = [&](const std::vector<double>& divided) {
    const std::vector<double> found = shares();
    ASSERT_EQ(found.size(), divided.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], 1.0 - 0.75 * divided[i], 1e-4) << i;
    }
  };
  expect({0, 0.25, 0.5, 0.75, 1, 1, 1, 1});
  config.layer_kinds[0].rope_scaling.truncate = false;
  const double width = 3.4140 - 0.8120;
  expect({0, 0.1880 / width, 1.1880 / width, 2.1880 / width, 1, 1, 1, 1});
  // A ramp of zero width is a step after its pair.
  config.layer_kinds[0].rope_scaling.beta_slow = config.layer_kinds[0].rope_scaling.beta_fast;
  expect({0, 1, 1, 1, 1, 1, 1, 1});
}

TEST(RopeTableTest, HoldsCosinesAndSinesOfEveryAngle) {
  const ModelConfig config = Llama31(64);
  constexpr size_t kPositions = 200;
  const size_t pairs = 32;
  // One more element, which must not change.
  std::vector<float> cosines(kPositions * pairs + 1, 7.0f);
  std::vector<float> sines(kPositions * pairs + 1, 7.0f);
  FillRopeTable(RopeInverseFrequencies(config, config.layer_kinds[0], kPositions), kPositions,
                cosines.data(), sines.data());
  for (size_t position = 0; position < kPositions; ++position) {
    for (size_t i = 0; i < pairs; ++i) {
      const double plain = std::pow(500000.0, -2.0 * static_cast<double>(i) / 64);
      const double angle = static_cast<double>(position) *
                           Llama3Frequency(plain, config.layer_kinds[0].rope_scaling);
      ASSERT_NEAR(cosines[position * pairs + i], std::cos(angle), 1e-7);
      ASSERT_NEAR(sines[position * pairs + i], std::sin(angle), 1e-7);
    }
  }
  EXPECT_EQ(cosines[0], 1.0f);
  EXPECT_EQ(sines[0], 0.0f);
  EXPECT_EQ(cosines.back(), 7.0f);
  EXPECT_EQ(sines.back(), 7.0f);
}

TEST(RopeTableTest, KindsShareTablesUnlessTheirFrequenciesDiffer) {
  const LayerKind full = {.rope_theta = 1e6f};
  const LayerKind windowed = {.sliding_window = 12, .rope_theta = 1e6f};
  const LayerKind other = {.sliding_window = 12, .rope_theta = 1e4f};
  LayerKind scaled = full;
  scaled.rope_scaling = {.type = RopeScaling::Type::kLinear, .factor = 2.0f};
  ModelConfig config = Config(8, 1e6f);
  EXPECT_EQ(KindsWithRopeTables(config).size(), 1u);
  config.layer_kinds = {full, windowed};
  EXPECT_EQ(KindsWithRopeTables(config).size(), 1u);
  config.layer_kinds = {windowed, other, full, scaled};
  const std::vector<LayerKind> tables = KindsWithRopeTables(config);
  EXPECT_EQ(tables, (std::vector<LayerKind>{windowed, other, scaled}));
  EXPECT_EQ(RopeTableOf(tables, full), 0u);
  EXPECT_EQ(RopeTableOf(tables, windowed), 0u);
  EXPECT_EQ(RopeTableOf(tables, other), 1u);
  EXPECT_EQ(RopeTableOf(tables, scaled), 2u);
}

TEST(RopeTableTest, LatePositionsStayExact) {
  const ModelConfig config = Config(4, 10000.0f);
  constexpr size_t kPositions = 131072;
  std::vector<float> cosines(kPositions * 2);
  std::vector<float> sines(kPositions * 2);
  FillRopeTable(RopeInverseFrequencies(config, config.layer_kinds[0], kPositions), kPositions,
                cosines.data(), sines.data());
  EXPECT_NEAR(cosines[131071 * 2], std::cos(131071.0), 1e-7);
  EXPECT_NEAR(sines[131071 * 2 + 1], std::sin(1310.71), 1e-7);
}

}  // namespace
}  // namespace cria
