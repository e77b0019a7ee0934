// What transformers' classes for the families of 2025 and 2026 make of a config.json, and what is
// refused because it would compute something else.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr const char* kMinistral3 = "Ministral3ForCausalLM";
constexpr const char* kGranite4 = "GraniteMoeHybridForCausalLM";
constexpr const char* kGptOss = "GptOssForCausalLM";
constexpr const char* kOlmo3 = "Olmo3ForCausalLM";
constexpr const char* kExaone4 = "Exaone4ForCausalLM";
constexpr const char* kErnie = "Ernie4_5ForCausalLM";
constexpr const char* kSeedOss = "SeedOssForCausalLM";
constexpr const char* kHunyuan = "HunYuanDenseV1ForCausalLM";
constexpr const char* kGlm4 = "Glm4ForCausalLM";
constexpr const char* kArcee = "ArceeForCausalLM";
constexpr const char* kApertus = "ApertusForCausalLM";

class RecentFamiliesTest : public HfConfigFixture {
 protected:
  ModelConfig ReadOf(const char* architecture, const json& fields) {
    auto read = ReadAs(architecture, fields);
    EXPECT_TRUE(read) << fields << ": " << read.error().message();
    return read.value_or(ModelConfig{});
  }
};

TEST_F(RecentFamiliesTest, QueriesOfMinistral3AreMultiplied) {
  const json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"rope_theta", 1e6}};
  const auto with = [&](const json& more) -> json {
    return {{"rope_parameters", With(yarn, more)}};
  };
  const ModelConfig config = ReadOf(
      kMinistral3, with({{"llama_4_scaling_beta", 0.5}, {"original_max_position_embeddings", 16}}));
  EXPECT_EQ(config.llama_4_scaling_beta, 0.5f);
  EXPECT_EQ(config.llama_4_scaling_positions, 16u);
  // Without the class's parameters, it has none; without any, those of the class.
  ExpectRefusedAs(kMinistral3, with(json::object()), "llama_4_scaling_beta is missing");
  ExpectRefusedAs(kMinistral3, with({{"llama_4_scaling_beta", -1.0}}), "must not be below 0");
  EXPECT_EQ(ReadOf(kMinistral3, {{"rope_parameters", nullptr}, {"rope_theta", nullptr}})
                .llama_4_scaling_positions,
            16384u);
  ExpectRefusedAs(kMinistral3, {{"rope_theta", 1e5}}, "rope_theta is outside rope_parameters");
  const ModelConfig zero = ReadOf(kMinistral3, with({{"llama_4_scaling_beta", 0.0}}));
  EXPECT_EQ(zero.llama_4_scaling_positions, 0u);
  ExpectRefusedAs(kMinistral3, With(with({{"llama_4_scaling_beta", 0.5}}), {{"sliding_window", 0}}),
                  "sliding_window is 0");
}

TEST_F(RecentFamiliesTest, Granite4MayHaveNeitherMambaNorExperts) {
  const json fields = {{"shared_intermediate_size", 32},
                       {"num_local_experts", 0},
                       {"layer_types", {"attention", "full_attention"}},
                       {"num_hidden_layers", 2}};
  EXPECT_TRUE(ReadOf(kGranite4, fields).layer_kinds[0].no_rope);
  EXPECT_EQ(ReadOf(kGranite4, fields).intermediate_size, 32u);
  EXPECT_FALSE(ReadOf(kGranite4, With(fields, {{"position_embedding_type", "rope"}}))
                   .layer_kinds[0]
                   .no_rope);
  const auto expect_refused = [&](const json& more, std::string_view reason) {
    ExpectRefusedAs(kGranite4, With(fields, more), reason);
  };
  expect_refused({{"position_embedding_type", "alibi"}}, "this version supports rope and nope");
  expect_refused({{"layer_types", {"sliding_attention", "attention"}}},
                 "this version supports mamba and attention");
  expect_refused({{"layer_types", {"attention"}}}, "has 1 entries");
  expect_refused({{"layers_block_type", {"attention", "linear_attention"}}},
                 "contradicts layer_types");
  expect_refused({{"sliding_window", 8}}, "sliding_window is 8");
}

// Without types, all layers are Mamba's.
TEST_F(RecentFamiliesTest, Granite4HasLayersOfMamba) {
  const json fields = {{"shared_intermediate_size", 32},
                       {"num_local_experts", 0},
                       {"layer_types", {"mamba", "attention"}},
                       {"num_hidden_layers", 2},
                       {"hidden_size", 64},
                       {"mamba_n_heads", 8},
                       {"mamba_d_state", 16}};
  const ModelConfig config = ReadOf(kGranite4, fields);
  EXPECT_TRUE(config.layer_kind(0).mamba);
  EXPECT_TRUE(config.layer_kind(1).has_attention());
  EXPECT_EQ(config.mamba_d_head, 16u);
  EXPECT_EQ(config.mamba_d_conv, 4u);
  EXPECT_EQ(config.mamba_n_groups, 1u);
  EXPECT_TRUE(config.mamba_conv_bias);
  EXPECT_FALSE(config.mamba_proj_bias);
  json older = fields;
  older.erase("layer_types");
  older["layers_block_type"] = {"linear_attention", "full_attention"};
  EXPECT_TRUE(ReadOf(kGranite4, older).layer_kind(0).mamba);
  const json limit = {0.0, {{"__float__", "Infinity"}}};
  EXPECT_TRUE(ReadOf(kGranite4, With(fields, {{"time_step_limit", limit}})).has_mamba());
  EXPECT_EQ(ReadOf(kGranite4, With(fields, {{"mamba_expand", 3}})).mamba_d_head, 24u);
  EXPECT_EQ(ReadOf(kGranite4, With(fields, {{"mamba_d_head", "auto"}})).mamba_d_head, 16u);
  // Layers without Mamba need none of its fields.
  EXPECT_FALSE(ReadOf(kGranite4, With(fields, {{"layer_types", {"attention", "attention"}}}))
                   .has_recurrent_layers());

  const auto expect_refused = [&](const json& more, std::string_view reason) {
    ExpectRefusedAs(kGranite4, With(fields, more), reason);
  };
  expect_refused({{"layer_types", nullptr}}, "mamba is true for every layer");
  expect_refused({{"mamba_d_head", 32}}, "mamba_expand * hidden_size is 128");
  expect_refused({{"mamba_d_head", "other"}}, "mamba_d_head");
  expect_refused({{"mamba_d_head", nullptr}}, "mamba_d_head is null");
  expect_refused({{"mamba_n_heads", 7}}, "mamba_d_head is 18 for 7 heads");
  expect_refused({{"mamba_n_heads", 0}}, "mamba_d_head is 128 for 0 heads");
  expect_refused({{"mamba_n_groups", 3}}, "is not a multiple of mamba_n_groups");
  expect_refused({{"mamba_conv_bias", nullptr}}, "mamba_conv_bias is null");
  expect_refused({{"time_step_limit", {0.001, 0.1}}}, "supports no bounds of time steps");
  expect_refused({{"time_step_limit", {0.0, 0.1}}}, "supports no bounds of time steps");
  expect_refused({{"hidden_act", "gelu"}}, "is not silu, which this version needs for Mamba");
}

TEST_F(RecentFamiliesTest, Granite4MayBeAMixture) {
  const json fields = {{"shared_intermediate_size", 32},
                       {"intermediate_size", 24},
                       {"num_local_experts", 4},
                       {"layer_types", {"mamba", "attention"}},
                       {"num_hidden_layers", 2},
                       {"hidden_size", 64},
                       {"mamba_n_heads", 8}};
  const ModelConfig config = ReadOf(kGranite4, fields);
  EXPECT_EQ(config.num_experts, 4u);
  EXPECT_EQ(config.num_experts_per_tok, 2u);
  EXPECT_EQ(config.moe_intermediate_size, 24u);
  EXPECT_EQ(config.shared_expert_intermediate_size, 32u);
  EXPECT_TRUE(config.norm_topk_prob);
  EXPECT_FALSE(config.shared_expert_gate);
  json absent = fields;
  absent.erase("num_local_experts");
  absent.erase("shared_intermediate_size");
  EXPECT_EQ(ReadOf(kGranite4, absent).num_experts, 8u);
  EXPECT_EQ(ReadOf(kGranite4, absent).shared_expert_intermediate_size, 1024u);
  ExpectRefusedAs(kGranite4, With(fields, {{"num_local_experts", nullptr}}), "is null");
  ExpectRefusedAs(kGranite4, With(fields, {{"num_experts", 4}}), "num_experts is not used");
}

TEST_F(RecentFamiliesTest, GptOssHasSinksAndBiasedExperts) {
  const json fields = {{"num_hidden_layers", 4},  {"num_local_experts", 8},
                       {"intermediate_size", 48}, {"head_dim", 16},
                       {"rope_theta", nullptr},   {"num_key_value_heads", 2}};
  const ModelConfig config = ReadOf(kGptOss, fields);
  EXPECT_TRUE(config.attn_sinks && config.router_bias && config.experts_bias);
  EXPECT_TRUE(config.qkv_bias && config.o_bias && config.norm_topk_prob);
  EXPECT_EQ(config.num_experts_per_tok, 4u);
  EXPECT_EQ(config.moe_intermediate_size, 48u);
  EXPECT_EQ(config.swiglu_alpha, 1.702f);
  EXPECT_EQ(config.swiglu_limit, 7.0f);
  // Every other layer has a window, beginning with the first.
  EXPECT_EQ(config.layer_kind(0).sliding_window, 128u);
  EXPECT_EQ(config.layer_kind(1).sliding_window, 0u);
  // Without parameters of rope, those of the class.
  for (const size_t layer : {0, 1}) {
    EXPECT_EQ(config.layer_kind(layer).rope_theta, 150000.0f);
    EXPECT_EQ(config.layer_kind(layer).rope_scaling.type, RopeScaling::Type::kYarn);
    EXPECT_EQ(config.layer_kind(layer).rope_scaling.factor, 32.0f);
    EXPECT_FALSE(config.layer_kind(layer).rope_scaling.truncate);
  }
  EXPECT_FALSE(ReadOf(kGptOss, With(fields, {{"attention_bias", false}})).qkv_bias);
  const auto expect_refused = [&](const json& more, std::string_view reason) {
    ExpectRefusedAs(kGptOss, With(fields, more), reason);
  };
  expect_refused({{"swiglu_limit", 0.0}}, "swiglu_limit is 0");
  expect_refused({{"swiglu_alpha", -1.0}}, "swiglu_alpha is -1");
  expect_refused({{"swiglu_limit", nullptr}}, "swiglu_limit is null");
  expect_refused({{"attention_bias", nullptr}}, "attention_bias is null");
  expect_refused({{"hidden_act", "gelu"}}, "hidden_act is not silu");
  expect_refused({{"num_experts", 4}}, "contradicts num_local_experts");
  EXPECT_TRUE(ReadOf(kGptOss, With(fields, {{"quantization_config", {{"quant_method", "mxfp4"}}}}))
                  .attn_sinks);
  for (const json& value : {json({{"quant_method", "awq"}}), json::object(), json("mxfp4")}) {
    expect_refused({{"quantization_config", value}}, "quantization_config is ");
  }
}

TEST_F(RecentFamiliesTest, Olmo3ScalesOnlyLayersWithoutAWindow) {
  const json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  const json fields = {{"num_hidden_layers", 4}, {"sliding_window", 8}, {"rope_theta", nullptr}};
  const ModelConfig config = ReadOf(kOlmo3, With(fields, {{"rope_scaling", linear}}));
  EXPECT_EQ(config.layer_kind(0).rope_scaling.type, RopeScaling::Type::kNone);
  EXPECT_EQ(config.layer_kind(0).rope_theta, 5e5f);
  EXPECT_EQ(config.layer_kind(3).rope_scaling.factor, 2.0f);
  ExpectRefusedAs(kOlmo3, With(fields, {{"rope_theta", 10000.0}}),
                  "layers with a window have 5e+05 then");
  ExpectRefusedAs(kOlmo3, With(fields, {{"rope_parameters", linear}}),
                  "must have an object for each type of layers");
}

TEST_F(RecentFamiliesTest, Exaone4HasRopeWhereWindowsAre) {
  const json fields = {{"num_hidden_layers", 4}, {"sliding_window", 8}};
  const ModelConfig config = ReadOf(kExaone4, fields);
  EXPECT_FALSE(config.layer_kind(2).no_rope);
  EXPECT_TRUE(config.layer_kind(3).no_rope);
  ExpectRefusedAs(kExaone4, With(fields, {{"sliding_window", 0}}), "null means that there is no");
  ExpectRefusedAs(kExaone4, With(fields, {{"sliding_window", nullptr}}), "gives no window");
  ExpectRefusedAs(kExaone4, With(fields, {{"sliding_window_pattern", "LLLG"}}),
                  "sliding_window_pattern is \"LLLG\"");
}

TEST_F(RecentFamiliesTest, BiasesAreWhereTheClassHasThem) {
  const ModelConfig ernie = ReadOf(kErnie, {{"use_bias", true}});
  EXPECT_TRUE(ernie.qkv_bias && ernie.o_bias && ernie.mlp_bias);
  ExpectRefusedAs(kErnie, {{"attention_bias", true}}, "attention_bias is true");
  const ModelConfig seed = ReadOf(kSeedOss, {});
  EXPECT_TRUE(seed.qkv_bias);
  EXPECT_FALSE(seed.o_bias);
  EXPECT_TRUE(ReadOf(kSeedOss, {{"attention_out_bias", true}}).o_bias);
  ExpectRefusedAs(kSeedOss, {{"attention_bias", nullptr}}, "attention_bias is null");
  EXPECT_TRUE(ReadOf(kGlm4, {{"head_dim", 8}}).qkv_bias);
  EXPECT_FALSE(ReadOf(kGlm4, {{"head_dim", 8}}).o_bias);
}

TEST_F(RecentFamiliesTest, AHalfOfGlmsHeadsIsRotated) {
  EXPECT_EQ(ReadOf(kGlm4, {{"head_dim", 8}}).rotary_dim, 4u);
  EXPECT_EQ(ReadOf(kGlm4, {{"head_dim", 8}, {"partial_rotary_factor", nullptr}}).rotary_dim, 0u);
  EXPECT_EQ(ReadOf(kGlm4, {{"head_dim", 8}, {"partial_rotary_factor", 0.25}}).rotary_dim, 2u);
  ExpectRefusedAs(kGlm4, {{"head_dim", 10}}, "must make an even part of a head of 10 channels");
}

TEST_F(RecentFamiliesTest, AlphaMakesHunyuansBaseLarger) {
  const json rope = {{"type", "dynamic"}, {"alpha", 16.0}, {"factor", 1.0}};
  const json fields = {{"head_dim", 4}, {"rope_theta", 100.0}};
  const ModelConfig config = ReadOf(kHunyuan, With(fields, {{"rope_scaling", rope}}));
  EXPECT_EQ(config.layer_kinds[0].rope_theta, 25600.0f);
  EXPECT_EQ(config.layer_kinds[0].rope_scaling.type, RopeScaling::Type::kNone);
  const auto expect_refused = [&](const json& more, std::string_view reason) {
    ExpectRefusedAs(kHunyuan, With(fields, {{"rope_scaling", With(rope, more)}}), reason);
  };
  expect_refused({{"type", "linear"}}, "alpha is given");
  expect_refused({{"alpha", 0.0}}, "must be more than 0");
  // The norms behind rope would undo the factor.
  ExpectRefusedAs(kHunyuan,
                  With(fields, {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
                  "attention_factor is 1.1386");
}

TEST_F(RecentFamiliesTest, FeedForwardsWithoutAGateHaveOneActivation) {
  ExpectRefusedAs(kArcee, {{"hidden_act", "silu"}}, "this version supports relu2");
  ExpectRefusedAs(kApertus, {{"hidden_act", "silu"}}, "this version supports xielu");
  ExpectRefused("hidden_act", "relu2", "hidden_act is \"relu2\"");
  EXPECT_TRUE(ReadOf(kArcee, {{"hidden_act", "relu2"}, {"mlp_bias", true}}).mlp_bias);
  // An empty rope_scaling is none, and the class has parameters of its own.
  EXPECT_EQ(ReadOf(kApertus, {{"hidden_act", "xielu"}, {"rope_scaling", json::object()}})
                .layer_kinds[0]
                .rope_scaling.type,
            RopeScaling::Type::kLlama3);
}

TEST_F(RecentFamiliesTest, ATextModelWithinOneThatSeesIsOfAFamily) {
  json text = support::TinyConfig();
  text.erase("architectures");
  text["model_type"] = "mistral";
  const auto outer = [&](const json& more) {
    json all = {{"architectures", {"Mistral3ForConditionalGeneration"}},
                {"model_type", "mistral3"},
                {"text_config", text}};
    all.update(more);
    return all;
  };
  text.erase("tie_word_embeddings");
  const auto read = Read(outer(json::object()));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->architecture, "MistralForCausalLM");
  // The class around it says this.
  EXPECT_TRUE(read->tie_word_embeddings);
  EXPECT_FALSE(Read(outer({{"tie_word_embeddings", false}}))->tie_word_embeddings);
  const auto expect_refused = [&](const json& more, std::string_view reason) {
    const auto refused = Read(outer(more));
    ASSERT_FALSE(refused) << more;
    EXPECT_THAT(refused.error().message(), ::testing::HasSubstr(reason));
  };
  expect_refused({{"text_config", nullptr}}, "text_config must be an object");
  expect_refused({{"model_type", "llava"}}, "model_type is \"llava\"");
  // The class around it does not divide logits.
  expect_refused({{"text_config", With(text, {{"model_type", "granite"}})}},
                 "does not convert within a Mistral3ForConditionalGeneration");
  expect_refused({{"text_config", With(text, {{"attention_bias", true}})}},
                 "text_config.attention_bias is true");
}

}  // namespace
}  // namespace cria
