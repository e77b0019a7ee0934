#include "model/config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/llama_config.h"

namespace cria {
namespace {

using support::Llama32Of1B;

void ExpectRefused(const ModelConfig& config, const std::string& field,
                   ErrorCode code = ErrorCode::kInvalidFile) {
  const Status status = ValidateConfig(config);
  ASSERT_FALSE(status) << field;
  EXPECT_EQ(status.error().code(), code);
  EXPECT_NE(status.error().message().find(field), std::string::npos) << status.error().message();
}

TEST(ModelConfigTest, ARealConfigurationIsSound) {
  const ModelConfig config = Llama32Of1B();
  const Status status = ValidateConfig(config);
  EXPECT_TRUE(status) << status.error().message();
  EXPECT_EQ(config.query_channels(), 2048u);
  EXPECT_EQ(config.key_value_channels(), 512u);
  EXPECT_EQ(config.qkv_channels(), 3072u);
}

TEST(ModelConfigTest, ChannelCountsDoNotOverflow) {
  ModelConfig config = Llama32Of1B();
  config.num_attention_heads = config.num_key_value_heads = config.head_dim = 1024;
  ASSERT_TRUE(ValidateConfig(config));
  EXPECT_EQ(config.qkv_channels(), 3u << 20);
  config.head_dim = 1025;
  EXPECT_FALSE(ValidateConfig(config));
}

TEST(ModelConfigTest, EveryIntegerHasBoundsThatAreNamed) {
  struct Field {
    const char* name;
    uint32_t ModelConfig::* member;
    uint32_t least;
    uint32_t most;
  };
  const std::vector<Field> fields = {
      {"hidden_size", &ModelConfig::hidden_size, 2, 1u << 17},
      {"intermediate_size", &ModelConfig::intermediate_size, 1, 1u << 19},
      {"num_hidden_layers", &ModelConfig::num_hidden_layers, 1, 1024},
      {"num_attention_heads", &ModelConfig::num_attention_heads, 8, 1024},
      {"num_key_value_heads", &ModelConfig::num_key_value_heads, 1, 32},
      {"head_dim", &ModelConfig::head_dim, 2, 1024},
      {"vocab_size", &ModelConfig::vocab_size, 1, 1u << 22},
      {"max_position_embeddings", &ModelConfig::max_position_embeddings, 1, 1u << 24}};
  for (const Field& field : fields) {
    SCOPED_TRACE(field.name);
    ModelConfig config = Llama32Of1B();
    config.*field.member = field.least;
    EXPECT_TRUE(ValidateConfig(config));
    config.*field.member = field.most;
    EXPECT_TRUE(ValidateConfig(config));
    config.*field.member = 0;
    ExpectRefused(config, field.name);
    config.*field.member = field.most + 1;
    ExpectRefused(config, field.name);
    config.*field.member = std::numeric_limits<uint32_t>::max();
    ExpectRefused(config, field.name);
  }
}

TEST(ModelConfigTest, AWindowMayBeAbsentButNotHuge) {
  ModelConfig config = Llama32Of1B();
  for (const uint32_t window : {0u, 1u, 4096u, 1u << 24}) {
    config.sliding_window = window;
    EXPECT_TRUE(ValidateConfig(config)) << window;
  }
  for (const uint32_t window : {(1u << 24) + 1, ~0u}) {
    config.sliding_window = window;
    ExpectRefused(config, "sliding_window");
  }
}

TEST(ModelConfigTest, RealNumbersMustBePositiveAndFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value :
       {0.0f, -1.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    SCOPED_TRACE(value);
    ModelConfig config = Llama32Of1B();
    config.rms_norm_eps = value;
    ExpectRefused(config, "rms_norm_eps");
    config = Llama32Of1B();
    config.rope_theta = value;
    ExpectRefused(config, "rope_theta");
    config = Llama32Of1B();
    config.rope_scaling.factor = value;
    ExpectRefused(config, "rope_scaling.factor");
    config.rope_scaling.type = RopeScaling::Type::kLinear;
    ExpectRefused(config, "rope_scaling.factor");
    config.rope_scaling.type = RopeScaling::Type::kNone;
    EXPECT_TRUE(ValidateConfig(config));
    config = Llama32Of1B();
    config.rope_scaling.low_freq_factor = value;
    ExpectRefused(config, "rope_scaling.low_freq_factor");
    config = Llama32Of1B();
    config.rope_scaling.high_freq_factor = value;
    ExpectRefused(config, "rope_scaling.high_freq_factor");
  }
}

TEST(ModelConfigTest, Llama3ScalingNeedsItsOtherFieldsAndLinearDoesNot) {
  ModelConfig config = Llama32Of1B();
  config.rope_scaling.high_freq_factor = config.rope_scaling.low_freq_factor;
  ExpectRefused(config, "high_freq_factor");
  config.rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_TRUE(ValidateConfig(config));
  config = Llama32Of1B();
  for (const uint32_t length : {0u, (1u << 24) + 1}) {
    config.rope_scaling.original_max_position_embeddings = length;
    ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  }
}

ModelConfig WithYarn() {
  ModelConfig config = Llama32Of1B();
  config.rope_scaling = {
      .type = RopeScaling::Type::kYarn, .factor = 4.0f, .original_max_position_embeddings = 32768};
  return config;
}

TEST(ModelConfigTest, YarnNeedsItsFields) {
  EXPECT_TRUE(ValidateConfig(WithYarn()));
  for (const float value : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    ModelConfig config = WithYarn();
    config.rope_scaling.attention_factor = value;
    ExpectRefused(config, "rope_scaling.attention_factor");
    config = WithYarn();
    config.rope_scaling.beta_fast = value;
    ExpectRefused(config, "rope_scaling.beta_fast");
    config = WithYarn();
    config.rope_scaling.beta_slow = value;
    ExpectRefused(config, "rope_scaling.beta_slow");
  }
  ModelConfig config = WithYarn();
  config.rope_scaling.beta_slow = 33.0f;
  ExpectRefused(config, "rope_scaling.beta_fast must not be smaller");
  config = WithYarn();
  config.rope_theta = 1.0f;
  ExpectRefused(config, "rope_theta is 1");
  for (const uint32_t length : {0u, (1u << 24) + 1}) {
    config = WithYarn();
    config.rope_scaling.original_max_position_embeddings = length;
    ExpectRefused(config, "rope_scaling.original_max_position_embeddings");
  }
}

TEST(ModelConfigTest, WhatStretchesTheContextDoesNotShrinkIt) {
  for (const auto type : {RopeScaling::Type::kDynamic, RopeScaling::Type::kYarn}) {
    ModelConfig config = WithYarn();
    config.rope_scaling.type = type;
    config.rope_scaling.factor = 0.5f;
    ExpectRefused(config, "rope_scaling.factor is 0.5");
    config.rope_scaling.factor = 1.0f;
    EXPECT_TRUE(ValidateConfig(config));
  }
  ModelConfig config = WithYarn();
  config.rope_scaling.type = RopeScaling::Type::kDynamic;
  config.head_dim = 2;
  ExpectRefused(config, "head_dim is 2");
}

TEST(ModelConfigTest, TheLongestContextIsTheStretchedOne) {
  ModelConfig config = WithYarn();
  config.max_position_embeddings = 32768;
  EXPECT_EQ(config.longest_context(), 131072u);
  config.max_position_embeddings = 262144;
  EXPECT_EQ(config.longest_context(), 262144u);
  config.rope_scaling = {.type = RopeScaling::Type::kDynamic, .factor = 2.5f};
  config.max_position_embeddings = 2048;
  EXPECT_EQ(config.longest_context(), 5120u);
  config.rope_scaling.factor = 1e30f;
  EXPECT_EQ(config.longest_context(), 1u << 24);
  config.rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_EQ(config.longest_context(), 2048u);
}

TEST(ModelConfigTest, OnlyYarnScalesScores) {
  ModelConfig config = WithYarn();
  config.rope_scaling.attention_factor = 1.5f;
  EXPECT_EQ(config.score_factor(), 2.25f);
  config.rope_scaling.type = RopeScaling::Type::kLinear;
  EXPECT_EQ(config.score_factor(), 1.0f);
}

TEST(ModelConfigTest, FieldsMustFitOneAnother) {
  ModelConfig config = Llama32Of1B();
  config.num_key_value_heads = 5;
  ExpectRefused(config, "multiple of num_key_value_heads");
  config = Llama32Of1B();
  config.num_key_value_heads = 64;
  ExpectRefused(config, "num_key_value_heads");
  config = Llama32Of1B();
  config.head_dim = 63;
  ExpectRefused(config, "head_dim");
  config = Llama32Of1B();
  config.hidden_size = 2047;
  ExpectRefused(config, "hidden_size", ErrorCode::kUnsupported);
}

TEST(ModelConfigTest, TheNameOfAFamilyDecidesNothing) {
  ModelConfig config = Llama32Of1B();
  for (const char* name : {"MistralForCausalLM", "SomeNewForCausalLM", ""}) {
    config.architecture = name;
    EXPECT_TRUE(ValidateConfig(config)) << name;
  }
}

}  // namespace
}  // namespace cria
