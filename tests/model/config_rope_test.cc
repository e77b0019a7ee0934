// What a configuration says of rope, and how long a context it allows.

#include "model/config.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "model/refused_config.h"
#include "support/llama_config.h"

namespace cria {
namespace {

using support::Llama32Of1B;

TEST(ConfigRopeTest, RealNumbersMustBePositiveAndFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value :
       {0.0f, -1.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    SCOPED_TRACE(value);
    ModelConfig config = Llama32Of1B();
    config.rms_norm_eps = value;
    ExpectRefused(config, "rms_norm_eps");
    config = Llama32Of1B();
    config.layer_kinds[0].rope_theta = value;
    ExpectRefused(config, "rope_theta");
    config = Llama32Of1B();
    config.layer_kinds[0].rope_scaling.factor = value;
    ExpectRefused(config, "rope_scaling.factor");
    config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
    ExpectRefused(config, "rope_scaling.factor");
    config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kNone;
    EXPECT_TRUE(ValidateConfig(config));
    config = Llama32Of1B();
    config.layer_kinds[0].rope_scaling.low_freq_factor = value;
    ExpectRefused(config, "rope_scaling.low_freq_factor");
    config = Llama32Of1B();
    config.layer_kinds[0].rope_scaling.high_freq_factor = value;
    ExpectRefused(config, "rope_scaling.high_freq_factor");
  }
}

TEST(ConfigRopeTest, Llama3ScalingNeedsItsOtherFieldsAndLinearDoesNot) {
  ModelConfig config = Llama32Of1B();
  config.layer_kinds[0].rope_scaling.high_freq_factor =
      config.layer_kinds[0].rope_scaling.low_freq_factor;
  ExpectRefused(config, "high_freq_factor");
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_TRUE(ValidateConfig(config));
  config = Llama32Of1B();
  for (const uint32_t length : {0u, (1u << 24) + 1}) {
    config.layer_kinds[0].rope_scaling.original_max_position_embeddings = length;
    ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  }
}

TEST(ConfigRopeTest, APartOfEachHeadMayBeRotated) {
  ModelConfig config = Llama32Of1B();
  EXPECT_EQ(config.rotary_channels(), config.head_dim);
  for (const uint32_t channels : {2u, 16u, config.head_dim}) {
    config.rotary_dim = channels;
    EXPECT_TRUE(ValidateConfig(config)) << channels;
    EXPECT_EQ(config.rotary_channels(), channels);
  }
  for (const uint32_t channels : {1u, 15u, config.head_dim + 2}) {
    config.rotary_dim = channels;
    ExpectRefused(config, "rotary_dim");
  }
  config.rotary_dim = 2;
  config.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kDynamic, .factor = 2.0f};
  ExpectRefused(config, "rotary_dim");
}

ModelConfig WithLongrope() {
  ModelConfig config = Llama32Of1B();
  config.layer_kinds[0].rope_scaling = {
      .type = RopeScaling::Type::kLongrope,
      .original_max_position_embeddings = 4096,
      .attention_factor = 1.19f,
      .short_factor = std::vector<float>(config.head_dim / 2, 1.0f),
      .long_factor = std::vector<float>(config.head_dim / 2, 8.0f)};
  return config;
}

TEST(ConfigRopeTest, LongropeHasAFactorForEachPair) {
  ModelConfig config = WithLongrope();
  EXPECT_TRUE(ValidateConfig(config));
  EXPECT_EQ(config.longest_context(), config.max_position_embeddings);
  EXPECT_EQ(config.layer_kinds[0].score_factor(), 1.19f * 1.19f);
  RopeScaling& scaling = config.layer_kinds[0].rope_scaling;
  scaling.short_factor[3] = 0.0f;
  ExpectRefused(config, "rope_scaling.short_factor[3]");
  scaling.short_factor[3] = 1.0f;
  scaling.long_factor.pop_back();
  ExpectRefused(config, "rope_scaling.long_factor has 31 entries");
  scaling.long_factor = scaling.short_factor;
  scaling.original_max_position_embeddings = 0;
  ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  config = WithLongrope();
  config.layer_kinds[0].rope_scaling.attention_factor = 0.0f;
  ExpectRefused(config, "rope_scaling.attention_factor");
}

TEST(ConfigRopeTest, AFactorOfScoresNeedsWholeHeadsThatAreRotated) {
  ModelConfig config = WithLongrope();
  config.rotary_dim = 48;
  RopeScaling& scaling = config.layer_kinds[0].rope_scaling;
  scaling.short_factor.resize(24);
  scaling.long_factor.resize(24);
  ExpectRefused(config, "attention_factor");
  scaling.attention_factor = 1.0f;
  EXPECT_TRUE(ValidateConfig(config));
}

TEST(ConfigRopeTest, LayersWithoutRopeHaveNoFactorOfIt) {
  LayerKind kind = WithLongrope().layer_kinds[0];
  kind.no_rope = true;
  EXPECT_EQ(kind.score_factor(), 1.0f);
}

ModelConfig WithYarn() {
  ModelConfig config = Llama32Of1B();
  config.layer_kinds[0].rope_scaling = {
      .type = RopeScaling::Type::kYarn, .factor = 4.0f, .original_max_position_embeddings = 32768};
  return config;
}

TEST(ConfigRopeTest, YarnNeedsItsFields) {
  EXPECT_TRUE(ValidateConfig(WithYarn()));
  for (const float value : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    ModelConfig config = WithYarn();
    config.layer_kinds[0].rope_scaling.attention_factor = value;
    ExpectRefused(config, "rope_scaling.attention_factor");
    config = WithYarn();
    config.layer_kinds[0].rope_scaling.beta_fast = value;
    ExpectRefused(config, "rope_scaling.beta_fast");
    config = WithYarn();
    config.layer_kinds[0].rope_scaling.beta_slow = value;
    ExpectRefused(config, "rope_scaling.beta_slow");
  }
  ModelConfig config = WithYarn();
  config.layer_kinds[0].rope_scaling.beta_slow = 33.0f;
  ExpectRefused(config, "rope_scaling.beta_fast must not be smaller");
  config = WithYarn();
  config.layer_kinds[0].rope_theta = 1.0f;
  ExpectRefused(config, "rope_theta is 1");
  for (const uint32_t length : {0u, (1u << 24) + 1}) {
    config = WithYarn();
    config.layer_kinds[0].rope_scaling.original_max_position_embeddings = length;
    ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  }
}

TEST(ConfigRopeTest, WhatStretchesTheContextDoesNotShrinkIt) {
  for (const auto type : {RopeScaling::Type::kDynamic, RopeScaling::Type::kYarn}) {
    ModelConfig config = WithYarn();
    config.layer_kinds[0].rope_scaling.type = type;
    config.layer_kinds[0].rope_scaling.factor = 0.5f;
    ExpectRefused(config, "rope_scaling.factor is 0.5");
    config.layer_kinds[0].rope_scaling.factor = 1.0f;
    EXPECT_TRUE(ValidateConfig(config));
  }
  ModelConfig config = WithYarn();
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kDynamic;
  config.head_dim = 2;
  ExpectRefused(config, "head_dim is 2");
}

TEST(ConfigRopeTest, TheLongestContextIsTheStretchedOne) {
  ModelConfig config = WithYarn();
  config.max_position_embeddings = 32768;
  EXPECT_EQ(config.longest_context(), 131072u);
  config.max_position_embeddings = 262144;
  EXPECT_EQ(config.longest_context(), 262144u);
  config.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kDynamic, .factor = 2.5f};
  config.max_position_embeddings = 2048;
  EXPECT_EQ(config.longest_context(), 5120u);
  config.layer_kinds[0].rope_scaling.factor = 1e30f;
  EXPECT_EQ(config.longest_context(), 1u << 24);
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_EQ(config.longest_context(), 2048u);
}

TEST(ConfigRopeTest, OnlyYarnScalesScores) {
  ModelConfig config = WithYarn();
  config.layer_kinds[0].rope_scaling.attention_factor = 1.5f;
  EXPECT_EQ(config.layer_kinds[0].score_factor(), 2.25f);
  config.layer_kinds[0].rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_EQ(config.layer_kinds[0].score_factor(), 1.0f);
}

TEST(ConfigRopeTest, APartOfThePairsTurnsProportionally) {
  ModelConfig config = Llama32Of1B();
  RopeScaling& scaling = config.layer_kinds[0].rope_scaling;
  scaling = {.type = RopeScaling::Type::kProportional, .partial_rotary_factor = 0.5f};
  EXPECT_TRUE(ValidateConfig(config));
  scaling.partial_rotary_factor = 1.5f;
  ExpectRefused(config, "partial_rotary_factor must be at most 1");
  scaling.partial_rotary_factor = 0.0f;
  ExpectRefused(config, "partial_rotary_factor is 0");
  scaling.partial_rotary_factor = 0.5f;
  config.rotary_dim = 32;
  ExpectRefused(config, "rotary_dim is given, too");
}

}  // namespace
}  // namespace cria
