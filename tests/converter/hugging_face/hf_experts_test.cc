// What transformers' classes for mixtures of experts make of a config.json, and what is refused.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr const char* kMixtral = "MixtralForCausalLM";
constexpr const char* kQwen2Moe = "Qwen2MoeForCausalLM";
constexpr const char* kQwen3Moe = "Qwen3MoeForCausalLM";
constexpr const char* kOlmoe = "OlmoeForCausalLM";
constexpr const char* kGraniteMoe = "GraniteMoeForCausalLM";
constexpr const char* kGraniteMoeShared = "GraniteMoeSharedForCausalLM";

class HfExpertsTest : public HfConfigFixture {
 protected:
  ModelConfig ReadMixture(const char* architecture, const json& fields) {
    const auto read = ReadAs(architecture, fields);
    EXPECT_TRUE(read) << fields << ": " << read.error().message();
    return read.value_or(ModelConfig{});
  }
  // For each layer, whether it has experts.
  std::string Layers(const char* architecture, const json& fields) {
    const ModelConfig config = ReadMixture(architecture, fields);
    std::string text;
    for (size_t i = 0; i < config.num_hidden_layers; ++i) text += config.is_mixture(i) ? 'e' : 'd';
    return text;
  }
};

TEST_F(HfExpertsTest, AbsentFieldsHaveTheDefaultsOfTheFamily) {
  struct {
    const char* architecture;
    uint32_t num_experts;
    uint32_t num_experts_per_tok;
    uint32_t width;
    bool norm_topk_prob;
    uint32_t shared_width;
  } const cases[] = {
      {kMixtral, 8, 2, 16, true, 0},      {kQwen2Moe, 60, 4, 1408, false, 5632},
      {kQwen3Moe, 128, 8, 768, false, 0}, {kOlmoe, 64, 8, 16, false, 0},
      {kGraniteMoe, 8, 2, 16, true, 0},   {kGraniteMoeShared, 8, 2, 16, true, 0},
  };
  for (const auto& expected : cases) {
    const ModelConfig config = ReadMixture(expected.architecture, {{"intermediate_size", 16}});
    EXPECT_EQ(config.num_experts, expected.num_experts) << expected.architecture;
    EXPECT_EQ(config.num_experts_per_tok, expected.num_experts_per_tok) << expected.architecture;
    EXPECT_EQ(config.moe_intermediate_size, expected.width) << expected.architecture;
    EXPECT_EQ(config.norm_topk_prob, expected.norm_topk_prob) << expected.architecture;
    EXPECT_EQ(config.shared_expert_intermediate_size, expected.shared_width);
    EXPECT_EQ(config.shared_expert_gate, expected.shared_width != 0) << expected.architecture;
  }
  EXPECT_EQ(ReadMixture(kMixtral, {}).layer_kinds.front().rope_theta, 1e6f);
}

TEST_F(HfExpertsTest, FieldsAreRead) {
  const ModelConfig qwen = ReadMixture(kQwen2Moe, {{"num_experts", 6},
                                                   {"num_experts_per_tok", 3},
                                                   {"moe_intermediate_size", 24},
                                                   {"shared_expert_intermediate_size", 40},
                                                   {"norm_topk_prob", true}});
  EXPECT_EQ(qwen.num_experts, 6u);
  EXPECT_EQ(qwen.num_experts_per_tok, 3u);
  EXPECT_EQ(qwen.moe_intermediate_size, 24u);
  EXPECT_EQ(qwen.shared_expert_intermediate_size, 40u);
  EXPECT_TRUE(qwen.norm_topk_prob && qwen.shared_expert_gate && qwen.qkv_bias);
  EXPECT_FALSE(qwen.o_bias);
  EXPECT_FALSE(ReadMixture(kQwen2Moe, {{"qkv_bias", false}}).qkv_bias);
  EXPECT_TRUE(ReadMixture(kQwen3Moe, {}).qk_norm);
  EXPECT_TRUE(ReadMixture(kQwen3Moe, {{"attention_bias", true}}).o_bias);
  EXPECT_TRUE(ReadMixture(kOlmoe, {}).joint_qk_norm);
  const ModelConfig shared = ReadMixture(kGraniteMoeShared, {{"shared_intermediate_size", 12}});
  EXPECT_EQ(shared.shared_expert_intermediate_size, 12u);
  EXPECT_FALSE(shared.shared_expert_gate);
  EXPECT_EQ(ReadMixture(kMixtral, {{"sliding_window", 12}}).layer_kinds.front().sliding_window,
            12u);
}

TEST_F(HfExpertsTest, CountsHaveTwoNames) {
  EXPECT_EQ(ReadMixture(kMixtral, {{"num_local_experts", 4}}).num_experts, 4u);
  EXPECT_EQ(ReadMixture(kMixtral, {{"num_experts", 4}}).num_experts, 4u);
  EXPECT_EQ(ReadMixture(kQwen3Moe, {{"num_local_experts", 9}}).num_experts, 9u);
  EXPECT_EQ(ReadMixture(kOlmoe, {{"num_experts", 9}, {"num_local_experts", 9}}).num_experts, 9u);
  ExpectRefusedAs(kMixtral, {{"num_local_experts", 8}, {"num_experts", 4}},
                  "num_experts contradicts num_local_experts");
  ExpectRefusedAs(kQwen2Moe, {{"num_local_experts", 4}},
                  "num_local_experts is not used by this architecture, but num_experts");
  ExpectRefusedAs(kGraniteMoe, {{"num_experts", 4}},
                  "num_experts is not used by this architecture, but num_local_experts");
}

TEST_F(HfExpertsTest, SomeLayersAreDense) {
  const json six = {{"num_hidden_layers", 6}};
  for (const char* architecture : {kQwen2Moe, kQwen3Moe}) {
    EXPECT_EQ(Layers(architecture, six), "eeeeee");
    EXPECT_EQ(Layers(architecture, With(six, {{"decoder_sparse_step", 2}})), "dedede");
    EXPECT_EQ(Layers(architecture, With(six, {{"mlp_only_layers", {0, 4}}})), "deeede");
    // A layer that is not there changes nothing.
    EXPECT_EQ(
        Layers(architecture, With(six, {{"decoder_sparse_step", 3}, {"mlp_only_layers", {2, 9}}})),
        "ddddde");
    EXPECT_EQ(Layers(architecture, With(six, {{"mlp_only_layers", nullptr}})), "eeeeee");
    ExpectRefusedAs(architecture, {{"decoder_sparse_step", 0}}, "decoder_sparse_step is 0");
    ExpectRefusedAs(architecture, {{"decoder_sparse_step", 3}}, "leaves no layer with experts");
    ExpectRefusedAs(architecture, {{"mlp_only_layers", {0, 1}}}, "leaves no layer with experts");
    for (const json& layers : {json("all"), json({-1}), json({0.5}), json({"1"}), json(1)}) {
      ExpectRefusedAs(architecture, {{"mlp_only_layers", layers}}, "must be a list of layers");
    }
  }
}

TEST_F(HfExpertsTest, RefusesWhatCannotBe) {
  for (const char* architecture : {kMixtral, kGraniteMoe}) {
    ExpectRefusedAs(architecture, {{"num_local_experts", 0}}, "a mixture needs experts");
    ExpectRefusedAs(architecture, {{"num_local_experts", 4}, {"num_experts_per_tok", 5}},
                    "num_experts_per_tok is 5");
  }
  for (const char* architecture : {kQwen2Moe, kQwen3Moe, kOlmoe}) {
    ExpectRefusedAs(architecture, {{"num_experts", 0}}, "a mixture needs experts");
    ExpectRefusedAs(architecture, {{"num_experts", 4}, {"num_experts_per_tok", 0}},
                    "num_experts_per_tok is 0");
    ExpectRefusedAs(architecture, {{"num_experts", 100000}}, "num_experts is 100000");
    ExpectRefusedAs(architecture, {{"norm_topk_prob", 1}}, "norm_topk_prob");
  }
  ExpectRefusedAs(kQwen3Moe, {{"moe_intermediate_size", 0}}, "moe_intermediate_size is 0");
}

TEST_F(HfExpertsTest, RefusesWhatChangesTheMathematics) {
  const json types = {"sliding_attention", "full_attention"};
  for (const char* architecture : {kQwen2Moe, kQwen3Moe}) {
    ExpectRefusedAs(architecture, {{"use_sliding_window", true}, {"sliding_window", 12}},
                    "use_sliding_window is true");
    ExpectRefusedAs(architecture, {{"layer_types", types}}, "layer_types has other layers");
    EXPECT_TRUE(ReadAs(architecture, {{"layer_types", {"full_attention", "full_attention"}}}));
    EXPECT_TRUE(ReadAs(architecture, {{"use_sliding_window", false}, {"sliding_window", 12}}));
  }
  ExpectRefusedAs(kOlmoe, {{"sliding_window", 12}}, "sliding_window is 12");
  ExpectRefusedAs(kOlmoe, {{"clip_qkv", 8.0}}, "clip_qkv is 8");
  EXPECT_TRUE(ReadAs(kOlmoe, {{"clip_qkv", nullptr}}));
  ExpectRefusedAs(kQwen2Moe, {{"attention_bias", true}}, "attention_bias is true");
  for (const char* architecture : {kMixtral, kQwen3Moe, kOlmoe, kGraniteMoe}) {
    ExpectRefusedAs(architecture, {{"mlp_bias", true}}, "mlp_bias is true");
  }
  ExpectRefusedAs(kMixtral, {{"embedding_multiplier", 12.0}}, "embedding_multiplier is 12");
}

// Their experts compute something else, or their layers do.
TEST_F(HfExpertsTest, OtherMixturesAreRefusedByName) {
  for (const char* architecture :
       {"Ernie4_5_MoeForCausalLM", "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM",
        "Llama4ForCausalLM", "PhimoeForCausalLM", "Glm4MoeForCausalLM"}) {
    ExpectRefusedAs(architecture, {{"num_local_experts", 32}},
                    "architectures is [\"" + std::string(architecture) +
                        "\"]; this version converts LlamaForCausalLM, ");
  }
  ExpectRefused("model_type", "deepseek_v3", "model_type is \"deepseek_v3\"");
}

}  // namespace
}  // namespace cria
