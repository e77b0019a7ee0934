// What the classes of Qwen3.5 and Qwen3-Next in transformers make of their fields, and what is
// refused because it would compute something else.

#include <gtest/gtest.h>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr const char* kQwen35 = "Qwen3_5ForCausalLM";
constexpr const char* kQwen35Moe = "Qwen3_5MoeForCausalLM";
constexpr const char* kQwen3Next = "Qwen3NextForCausalLM";

class HfLinearAttentionTest : public HfConfigFixture {
 protected:
  ModelConfig Config(const char* architecture, const json& fields) {
    const auto read = ReadAs(architecture, fields);
    EXPECT_TRUE(read) << fields << ": " << read.error().message();
    return read.value_or(ModelConfig{});
  }
  // For each layer, whether it is linear.
  std::string Layers(const json& fields) {
    const ModelConfig config = Config(kQwen35, fields);
    std::string text;
    for (size_t i = 0; i < config.num_hidden_layers; ++i) {
      text += config.layer_kind(i).linear_attention ? 'l' : 'a';
    }
    return text;
  }
};

const json kFourLayers = {{"num_hidden_layers", 4}};

TEST_F(HfLinearAttentionTest, AbsentFieldsHaveTheDefaultsOfTheClass) {
  for (const char* const architecture : {kQwen35, kQwen35Moe, kQwen3Next}) {
    const ModelConfig config = Config(architecture, With(kFourLayers, {{"head_dim", 16}}));
    EXPECT_EQ(config.linear_conv_kernel_dim, 4u);
    EXPECT_EQ(config.linear_key_head_dim, 128u);
    EXPECT_EQ(config.linear_value_head_dim, 128u);
    EXPECT_EQ(config.linear_num_key_heads, 16u);
    EXPECT_EQ(config.linear_num_value_heads, 32u);
    EXPECT_TRUE(config.attn_output_gate && config.qk_norm);
    EXPECT_EQ(config.rotary_dim, 4u);
    EXPECT_EQ(config.rms_norm_eps, 1e-5f);  // The tiny configuration has it.
  }
  const ModelConfig next = Config(kQwen3Next, kFourLayers);
  EXPECT_EQ(next.num_experts, 512u);
  EXPECT_EQ(next.num_experts_per_tok, 10u);
  EXPECT_EQ(next.head_dim, 256u);
  EXPECT_TRUE(next.norm_topk_prob && next.shared_expert_gate);
  const ModelConfig mixture = Config(kQwen35Moe, kFourLayers);
  EXPECT_EQ(mixture.num_experts, 256u);
  EXPECT_EQ(mixture.num_experts_per_tok, 8u);
  EXPECT_EQ(mixture.shared_expert_intermediate_size, 512u);
}

TEST_F(HfLinearAttentionTest, LayersAreLinearByTypeOrInterval) {
  EXPECT_EQ(Layers(kFourLayers), "llla");
  EXPECT_EQ(Layers(With(kFourLayers, {{"full_attention_interval", 2}})), "lala");
  EXPECT_EQ(Layers(With(kFourLayers, {{"full_attention_interval", 1}})), "aaaa");
  const json types = {"full_attention", "linear_attention", "full_attention", "linear_attention"};
  EXPECT_EQ(Layers(With(kFourLayers, {{"layer_types", types}, {"full_attention_interval", 3}})),
            "alal");
  EXPECT_EQ(Layers(With(kFourLayers, {{"layer_types", nullptr}})), "llla");
  // Without linear layers there are no sizes of them.
  EXPECT_EQ(
      Config(kQwen35, With(kFourLayers, {{"full_attention_interval", 1}})).linear_key_head_dim, 0u);
  ExpectRefusedAs(kQwen35, With(kFourLayers, {{"full_attention_interval", 0}}),
                  "full_attention_interval is 0");
  ExpectRefusedAs(kQwen35, With(kFourLayers, {{"full_attention_interval", nullptr}}),
                  "full_attention_interval is null");
  ExpectRefusedAs(kQwen35, With(kFourLayers, {{"full_attention_interval", 5}}),
                  "linear_attention is true for every layer");
  ExpectRefusedAs(kQwen35, With(kFourLayers, {{"layer_types", {"full_attention"}}}),
                  "layer_types has 1 entries, but num_hidden_layers is 4");
  ExpectRefusedAs(kQwen35,
                  With({{"num_hidden_layers", 1}}, {{"layer_types", {"sliding_attention"}}}),
                  "layer_types has \"sliding_attention\"");
}

TEST_F(HfLinearAttentionTest, WhatTheClassesDoNotComputeIsRefused) {
  const auto expect_refused = [&](const json& fields, const std::string& reason) {
    ExpectRefusedAs(kQwen35, With(kFourLayers, fields), reason);
  };
  expect_refused({{"attn_output_gate", false}}, "attn_output_gate is false");
  expect_refused({{"hidden_act", "gelu"}}, "hidden_act is not silu");
  expect_refused({{"attention_bias", true}}, "attention_bias is true");
  expect_refused({{"attention_bias", nullptr}}, "attention_bias is null");
  expect_refused({{"mlp_bias", true}}, "mlp_bias is true");
  expect_refused({{"num_experts", 4}}, "num_experts is 4");
  expect_refused({{"linear_num_value_heads", 24}}, "linear_num_value_heads (24) is not a multiple");
  for (const char* const size :
       {"linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim",
        "linear_num_key_heads", "linear_num_value_heads", "num_key_value_heads", "head_dim"}) {
    expect_refused({{size, nullptr}}, std::string(size) + " is null");
    // No part of a head without channels can turn.
    expect_refused({{size, 0}}, std::string_view(size) == "head_dim" ? "head of 0 channels" : size);
    expect_refused({{size, -4}}, size);
    expect_refused({{size, "4"}}, size);
  }
  ExpectRefusedAs(kQwen35Moe, With(kFourLayers, {{"num_local_experts", 8}}), "num_local_experts");
  ExpectRefusedAs(kQwen3Next, With(kFourLayers, {{"norm_topk_prob", nullptr}}),
                  "norm_topk_prob is null");
}

TEST_F(HfLinearAttentionTest, APartOfEachHeadTurns) {
  const auto rotary = [&](const json& fields) {
    return Config(kQwen35, With(With(kFourLayers, {{"head_dim", 32}}), fields)).rotary_dim;
  };
  EXPECT_EQ(rotary(json::object()), 8u);
  EXPECT_EQ(rotary({{"partial_rotary_factor", 0.5}}), 16u);
  EXPECT_EQ(rotary({{"partial_rotary_factor", 1.0}}), 0u);
  // The object's has precedence; without one in it, the other one is used.
  const json base = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  EXPECT_EQ(rotary({{"partial_rotary_factor", 0.5}, {"rope_parameters", base}}), 16u);
  EXPECT_EQ(rotary({{"partial_rotary_factor", 0.5},
                    {"rope_parameters", With(base, {{"partial_rotary_factor", 0.25}})}}),
            8u);
  EXPECT_EQ(rotary({{"rope_parameters", With(base, {{"mrope_section", {2, 1, 1}}})}}), 8u);
  const auto expect_refused = [&](const json& fields, const std::string& reason) {
    ExpectRefusedAs(kQwen35, With(With(kFourLayers, {{"head_dim", 32}}), fields), reason);
  };
  expect_refused({{"partial_rotary_factor", nullptr}}, "partial_rotary_factor is null");
  expect_refused({{"partial_rotary_factor", 0.1}}, "partial_rotary_factor is 0.1");
  expect_refused({{"rope_parameters", With(base, {{"mrope_section", {2, 1}}})}},
                 "mrope_section must be a list of three numbers");
  expect_refused({{"rope_parameters", With(base, {{"mrope_section", nullptr}})}},
                 "mrope_section must be a list of three numbers");
  ExpectRefusedAs(
      kQwen3Next,
      With(kFourLayers, {{"rope_parameters", With(base, {{"mrope_section", {1, 1, 1}}})}}),
      "mrope_section is given");
}

// The factor of yarn is one of the channels that turn, and so of weights.
TEST_F(HfLinearAttentionTest, YarnStretchesTheContext) {
  const ModelConfig config =
      Config(kQwen35, With(kFourLayers, {{"head_dim", 32},
                                         {"rope_parameters",
                                          {{"rope_type", "yarn"},
                                           {"rope_theta", 1e6},
                                           {"factor", 4.0},
                                           {"original_max_position_embeddings", 64}}}}));
  EXPECT_EQ(config.layer_kind(3).rope_scaling.type, RopeScaling::Type::kYarn);
  EXPECT_EQ(config.layer_kind(3).rope_scaling.attention_factor, 1.0f);
  EXPECT_EQ(config.layer_kind(0).rope_scaling, RopeScaling{});
}

}  // namespace
}  // namespace cria
