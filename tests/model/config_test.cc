#include "model/config.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "model/refused_config.h"
#include "support/llama_config.h"

namespace cria {
namespace {

using support::Llama32Of1B;

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
    config.layer_kinds[0].sliding_window = window;
    EXPECT_TRUE(ValidateConfig(config)) << window;
  }
  for (const uint32_t window : {(1u << 24) + 1, ~0u}) {
    config.layer_kinds[0].sliding_window = window;
    ExpectRefused(config, "sliding_window");
  }
}

TEST(ModelConfigTest, SoftCapsArePositiveOrAbsent) {
  for (float ModelConfig::* cap :
       {&ModelConfig::attn_logit_softcapping, &ModelConfig::final_logit_softcapping}) {
    const bool is_final = cap == &ModelConfig::final_logit_softcapping;
    const std::string name = is_final ? "final_logit_softcapping" : "attn_logit_softcapping";
    ModelConfig config = Llama32Of1B();
    config.*cap = 50.0f;
    EXPECT_TRUE(ValidateConfig(config));
    for (const float value :
         {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      config.*cap = value;
      ExpectRefused(config, name);
    }
  }
}

TEST(ModelConfigTest, UnknownEnumeratorsNeedANewerVersion) {
  ModelConfig config = Llama32Of1B();
  config.hidden_act = static_cast<HiddenAct>(3);
  ExpectRefused(config, "hidden_act is 3", ErrorCode::kUnsupported);
  config = Llama32Of1B();
  config.norm_placement = static_cast<NormPlacement>(3);
  ExpectRefused(config, "norm_placement is 3", ErrorCode::kUnsupported);
}

TEST(ModelConfigTest, NormsOfHeadsAreSeparateOrJoint) {
  ModelConfig config = Llama32Of1B();
  config.joint_qk_norm = true;
  EXPECT_TRUE(ValidateConfig(config));
  config.qk_norm = true;
  ExpectRefused(config, "joint_qk_norm");
}

ModelConfig WithExperts() {
  ModelConfig config = Llama32Of1B();
  config.num_experts = 8;
  config.num_experts_per_tok = 2;
  config.moe_intermediate_size = 64;
  return config;
}

TEST(ModelConfigTest, FieldsOfExpertsBelongTogether) {
  EXPECT_TRUE(ValidateConfig(WithExperts()));
  struct Case {
    const char* words;
    void (*change)(ModelConfig& config);
  };
  const std::vector<Case> cases = {
      {"num_experts is 1025", [](ModelConfig& config) { config.num_experts = 1025; }},
      {"num_experts is 0", [](ModelConfig& config) { config.num_experts = 0; }},
      {"num_experts_per_tok is 0", [](ModelConfig& config) { config.num_experts_per_tok = 0; }},
      {"num_experts_per_tok is 9", [](ModelConfig& config) { config.num_experts_per_tok = 9; }},
      {"moe_intermediate_size", [](ModelConfig& config) { config.moe_intermediate_size = 0; }},
      {"shared_expert_gate", [](ModelConfig& config) { config.shared_expert_gate = true; }},
      {"dense_mlp", [](ModelConfig& config) { config.layer_kinds[0].dense_mlp = true; }}};
  for (const Case& bad : cases) {
    ModelConfig config = WithExperts();
    bad.change(config);
    ExpectRefused(config, bad.words);
  }
  ModelConfig sigmoid = WithExperts();
  sigmoid.use_expert_bias = true;
  ExpectRefused(sigmoid, "use_expert_bias", ErrorCode::kUnsupported);
  sigmoid.scoring_func = ScoringFunc::kSigmoid;
  EXPECT_TRUE(ValidateConfig(sigmoid));
  sigmoid.scoring_func = static_cast<ScoringFunc>(2);
  ExpectRefused(sigmoid, "scoring_func is 2", ErrorCode::kUnsupported);
  ModelConfig without = Llama32Of1B();
  without.scoring_func = ScoringFunc::kSigmoid;
  ExpectRefused(without, "num_experts is 0");
  ModelConfig biased = WithExperts();
  biased.mlp_bias = true;
  ExpectRefused(biased, "mlp_bias", ErrorCode::kUnsupported);
  ModelConfig dense = Llama32Of1B();
  dense.layer_kinds[0].dense_mlp = true;
  ExpectRefused(dense, "num_experts is 0");
}

TEST(ModelConfigTest, GatesOfTheOutputAreRowsOfTheFusedProjection) {
  ModelConfig config = Llama32Of1B();
  config.attn_output_gate = true;
  EXPECT_EQ(config.qkv_channels(), 3072u + 2048);
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
