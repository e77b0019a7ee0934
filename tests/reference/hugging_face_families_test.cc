#include "reference/hugging_face_families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "reference/hugging_face_directory.h"
#include "reference/reference_decoder.h"
#include "reference/reference_mixture.h"
#include "reference/reference_short_conv.h"
#include "support/family_checkpoint.h"
#include "support/temporary_directory.h"

namespace cria::reference {
namespace {

ReferenceModel ModelOf(const std::string& name) {
  const support::TemporaryDirectory directory;
  support::WriteFamilyDirectory(support::FamilyNamed(name), directory.path() / "model");
  return ReadHuggingFaceDirectory(directory.path() / "model");
}

TEST(HuggingFaceFamilies, GemmasDifferInWhatTheirClassesSay) {
  const ReferenceConfig gemma = ModelOf("Gemma").config;
  EXPECT_EQ(gemma.norm_weight_offset, 1.0);
  EXPECT_EQ(gemma.embedding_multiplier, 8.0);
  EXPECT_EQ(gemma.norms, ReferenceNorms::kBefore);
  EXPECT_EQ(gemma.activation, ReferenceActivation::kGeluTanh);
  EXPECT_TRUE(gemma.tie_word_embeddings);
  EXPECT_EQ(gemma.score_scale, 0.0);
  const ReferenceConfig second = ModelOf("Gemma2").config;
  EXPECT_EQ(second.norms, ReferenceNorms::kBoth);
  EXPECT_EQ(second.score_scale, 0.25);
  EXPECT_EQ(second.attn_logit_softcapping, 1.5);
  EXPECT_EQ(second.final_logit_softcapping, 3.0);
  EXPECT_EQ(second.layers.at(0).sliding_window, 12u);
  EXPECT_EQ(second.layers.at(1).sliding_window, 0u);
  EXPECT_FALSE(second.qk_norm);
  EXPECT_EQ(ModelOf("Gemma2NoCaps").config.attn_logit_softcapping, 0.0);
  const ReferenceConfig third = ModelOf("Gemma3").config;
  EXPECT_TRUE(third.qk_norm);
  EXPECT_EQ(third.attn_logit_softcapping, 0.0);
  EXPECT_EQ(third.layers.at(1).sliding_window, 12u);
  EXPECT_EQ(third.layers.at(1).rope_theta, 1e4);
  EXPECT_EQ(third.layers.at(1).rope_scaling.type, ReferenceRopeScaling::Type::kNone);
  EXPECT_EQ(third.layers.at(2).sliding_window, 0u);
  EXPECT_EQ(third.layers.at(2).rope_theta, 1e6);
  EXPECT_EQ(third.layers.at(2).rope_scaling.factor, 8.0);
  EXPECT_EQ(ModelOf("Gemma3Vision").config.prefix, "model.language_model.");
}

TEST(HuggingFaceFamilies, OthersDoToo) {
  const ReferenceConfig phi = ModelOf("Phi4Mini").config;
  EXPECT_TRUE(phi.fused_projections);
  EXPECT_EQ(phi.rotary_dim, 12u);
  const ReferenceRopeScaling& scaling = phi.layers.at(0).rope_scaling;
  EXPECT_EQ(scaling.type, ReferenceRopeScaling::Type::kLongrope);
  EXPECT_EQ(scaling.original_max_position_embeddings, 32u);
  EXPECT_NEAR(scaling.attention_factor, std::sqrt(1.0 + std::log(4.0) / std::log(32.0)), 1e-12);
  const ReferenceConfig smol = ModelOf("SmolLm3").config;
  EXPECT_FALSE(smol.layers.at(2).no_rope);
  EXPECT_TRUE(smol.layers.at(3).no_rope);
  EXPECT_EQ(smol.layers.at(3).sliding_window, 0u);
  EXPECT_EQ(ModelOf("SmolLm3Window").config.layers.at(0).sliding_window, 12u);
  const ReferenceConfig granite = ModelOf("Granite").config;
  EXPECT_EQ(granite.embedding_multiplier, 6.0);
  EXPECT_EQ(granite.score_scale, 0.125);
  EXPECT_EQ(granite.residual_multiplier, 0.22);
  EXPECT_EQ(granite.logits_scaling, 0.5);
  const ReferenceConfig olmo = ModelOf("Olmo2").config;
  EXPECT_EQ(olmo.norms, ReferenceNorms::kAfter);
  EXPECT_TRUE(olmo.joint_qk_norm);
}

TEST(HuggingFaceFamilies, ConvolutionsAreInSomeLayers) {
  const ReferenceConfig lfm2 = ModelOf("Lfm2").config;
  EXPECT_EQ(lfm2.conv_L_cache, 3u);
  EXPECT_FALSE(lfm2.conv_bias);
  EXPECT_TRUE(lfm2.tie_word_embeddings);
  EXPECT_EQ(lfm2.intermediate_size, 160u);
  EXPECT_TRUE(lfm2.layers.at(1).short_conv);
  EXPECT_FALSE(lfm2.layers.at(2).short_conv);
  const ReferenceConfig other = ModelOf("Lfm2Biases").config;
  // 1.3 times two thirds of 300 are 260, or 288 as a multiple of 32.
  EXPECT_EQ(other.intermediate_size, 288u);
  EXPECT_FALSE(other.layers.at(3).short_conv);
  EXPECT_EQ(other.layers.at(3).rope_theta, 5e4);
  EXPECT_FALSE(other.tie_word_embeddings);
  const ReferenceConfig mixture = ModelOf("Lfm2MoeScaled").config;
  EXPECT_FALSE(mixture.experts.use_expert_bias || mixture.experts.norm_topk_prob);
  EXPECT_EQ(mixture.experts.routed_scaling_factor, 2.5);
  EXPECT_TRUE(mixture.HasExperts(0));
  EXPECT_FALSE(ModelOf("Lfm2Moe").config.HasExperts(0));
  const ReferenceConfig lfm3 = ModelOf("Lfm3").config;
  EXPECT_EQ(lfm3.conv_L_cache, 7u);
  EXPECT_EQ(lfm3.norms, ReferenceNorms::kBoth);
  EXPECT_TRUE(lfm3.use_attention_gate);
  EXPECT_EQ(lfm3.layers.at(2).rope_scaling.partial_rotary_factor, 0.5);
  EXPECT_EQ(lfm3.layers.at(2).rope_theta, 100.0);
  EXPECT_EQ(lfm3.layers.at(4).sliding_window, 12u);
  EXPECT_EQ(lfm3.layers.at(4).rope_theta, 1e4);
}

TEST(HuggingFaceFamilies, LinearAttentionIsInSomeLayers) {
  const ReferenceConfig qwen = ModelOf("Qwen35").config;
  EXPECT_EQ(qwen.linear.conv_kernel_dim, 4u);
  EXPECT_EQ(qwen.linear.num_key_heads, 2u);
  EXPECT_EQ(qwen.linear.num_value_heads, 4u);
  EXPECT_FALSE(qwen.linear.is_fused);
  EXPECT_EQ(qwen.rotary_dim, 8u);
  EXPECT_EQ(qwen.norm_weight_offset, 1.0);
  EXPECT_TRUE(qwen.attn_output_gate && qwen.qk_norm);
  EXPECT_TRUE(qwen.layers.at(2).linear_attention);
  EXPECT_FALSE(qwen.layers.at(3).linear_attention);
  const ReferenceConfig other = ModelOf("Qwen35Other").config;
  EXPECT_FALSE(other.layers.at(0).linear_attention);
  EXPECT_EQ(other.rotary_dim, 4u);
  EXPECT_EQ(other.rope_theta, 5e5);
  EXPECT_TRUE(other.tie_word_embeddings);
  const ReferenceConfig next = ModelOf("Qwen3NextDense").config;
  EXPECT_TRUE(next.linear.is_fused);
  EXPECT_FALSE(next.experts.norm_topk_prob);
  EXPECT_FALSE(next.HasExperts(1));
  EXPECT_TRUE(next.HasExperts(2));
  EXPECT_TRUE(ModelOf("Qwen35Moe").config.experts.norm_topk_prob);
}

// So that a comparison with the reference notices each of them.
TEST(HuggingFaceFamilies, EveryFieldChangesTheLogits) {
  std::vector<int> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(i * 7 % 290);
  struct Change {
    const char* name;
    void (*make)(ReferenceConfig& config);
  };
  const std::vector<Change> changes = {
      {"Gemma", [](ReferenceConfig& c) { c.norm_weight_offset = 0.0; }},
      {"Gemma", [](ReferenceConfig& c) { c.embedding_multiplier = 1.0; }},
      {"Gemma", [](ReferenceConfig& c) { c.activation = ReferenceActivation::kSilu; }},
      {"Gemma2", [](ReferenceConfig& c) { c.attn_logit_softcapping = 0.0; }},
      {"Gemma2", [](ReferenceConfig& c) { c.final_logit_softcapping = 0.0; }},
      {"Gemma2NoCaps", [](ReferenceConfig& c) { c.score_scale = 0.0; }},
      {"Gemma3", [](ReferenceConfig& c) { c.layers[0].rope_theta = 1e6; }},
      {"Gemma3", [](ReferenceConfig& c) { c.layers[2].rope_scaling = {}; }},
      {"Phi4Mini", [](ReferenceConfig& c) { c.layers[0].rope_scaling.attention_factor = 1.0; }},
      {"SmolLm3", [](ReferenceConfig& c) { c.layers[3].no_rope = false; }},
      {"Granite", [](ReferenceConfig& c) { c.score_scale = 0.0; }},
      {"Granite", [](ReferenceConfig& c) { c.residual_multiplier = 1.0; }},
      {"Granite", [](ReferenceConfig& c) { c.logits_scaling = 1.0; }},
      {"Lfm2Biases", [](ReferenceConfig& c) { c.conv_bias = false; }},
      {"Lfm2Moe", [](ReferenceConfig& c) { c.experts.use_expert_bias = false; }},
      {"Lfm2Moe", [](ReferenceConfig& c) { c.experts.norm_topk_prob = false; }},
      {"Lfm2Moe", [](ReferenceConfig& c) { c.experts.has_sigmoid_scores = false; }},
      {"Lfm2MoeScaled", [](ReferenceConfig& c) { c.experts.routed_scaling_factor = 1.0; }},
      {"Lfm3", [](ReferenceConfig& c) { c.use_attention_gate = false; }},
      {"Lfm3", [](ReferenceConfig& c) { c.layers[2].rope_scaling = {}; }},
      {"Lfm3", [](ReferenceConfig& c) { c.layers[4].sliding_window = 0; }},
      {"Qwen35", [](ReferenceConfig& c) { c.norm_weight_offset = 0.0; }},
      {"Qwen35", [](ReferenceConfig& c) { c.rotary_dim = 16; }},
      {"Qwen35Moe", [](ReferenceConfig& c) { c.experts.norm_topk_prob = false; }}};
  for (const Change& change : changes) {
    ReferenceModel model = ModelOf(change.name);
    const std::vector<double> expected = Logits(model, ids);
    change.make(model.config);
    const std::vector<double> changed = Logits(model, ids);
    double largest = 0.0, difference = 0.0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      difference = std::max(difference, std::abs(expected[i] - changed[i]));
    }
    EXPECT_GT(difference, 2e-2 * largest) << change.name << ' ' << &change - changes.data();
  }
  // The two lists of longrope.
  const ReferenceModel phi = ModelOf("Phi3Longrope");
  EXPECT_NE(Logits(phi, ids, 32), Logits(phi, ids, 33));
  EXPECT_EQ(Logits(phi, ids, 33), Logits(phi, ids, 128));
}

TEST(HuggingFaceFamilies, MixturesHaveExpertsInSomeLayers) {
  const ReferenceConfig mixtral = ModelOf("Mixtral").config;
  EXPECT_EQ(mixtral.experts.names, ReferenceExpertNames::kMixtral);
  EXPECT_EQ(mixtral.experts.num_experts, 4u);
  EXPECT_EQ(mixtral.experts.num_experts_per_tok, 2u);
  EXPECT_EQ(mixtral.experts.intermediate_size, 96u);
  EXPECT_TRUE(mixtral.experts.norm_topk_prob);
  EXPECT_EQ(ModelOf("MixtralWindow").config.AttentionOf(0).sliding_window, 12u);
  const ReferenceConfig qwen2 = ModelOf("Qwen2MoeDenseLayers").config;
  EXPECT_EQ(qwen2.experts.shared_intermediate_size, 160u);
  EXPECT_FALSE(qwen2.qkv_bias);
  EXPECT_TRUE(qwen2.experts.norm_topk_prob);
  // The second layer is listed as dense, and every other one is.
  EXPECT_EQ(qwen2.experts.is_dense, (std::vector<bool>{true, true, true, false}));
  EXPECT_FALSE(ModelOf("Qwen2Moe").config.experts.norm_topk_prob);
  const ReferenceConfig qwen3 = ModelOf("Qwen3MoeBiases").config;
  EXPECT_TRUE(qwen3.qk_norm && qwen3.o_bias && qwen3.tie_word_embeddings);
  EXPECT_FALSE(qwen3.HasExperts(0));
  EXPECT_TRUE(qwen3.HasExperts(2));
  EXPECT_TRUE(ModelOf("Olmoe").config.joint_qk_norm);
  const ReferenceConfig granite = ModelOf("GraniteMoeShared").config;
  EXPECT_EQ(granite.experts.names, ReferenceExpertNames::kGranite);
  EXPECT_EQ(granite.experts.shared_intermediate_size, 96u);
  EXPECT_EQ(granite.residual_multiplier, 0.22);
}

// One channel and three taps, with numbers that can be checked by hand.
TEST(ReferenceShortConv, MultipliesTheLastTokens) {
  ReferenceConfig config;
  config.hidden_size = 1;
  config.conv_L_cache = 3;
  std::map<std::string, std::vector<float>> tensors = {{"conv.in_proj.weight", {2.0f, 3.0f, 5.0f}},
                                                       {"conv.conv.weight", {0.5f, -1.0f, 2.0f}},
                                                       {"conv.out_proj.weight", {7.0f}},
                                                       {"conv.in_proj.bias", {0.0f, 1.0f, 0.0f}},
                                                       {"conv.conv.bias", {4.0f}},
                                                       {"conv.out_proj.bias", {-1.0f}}};
  const ReferenceShortConv::FindTensor find = [&](const std::string& name, const auto& /*shape*/) {
    return tensors.at(name).data();
  };
  ReferenceShortConv plain(config, "", find);
  // B * x is 10 times the square of the input: 10, 40, 10, 90.
  EXPECT_EQ(plain.Of({1.0}).at(0), 7.0 * 3.0 * (2.0 * 10.0));
  EXPECT_EQ(plain.Of({2.0}).at(0), 7.0 * 6.0 * (2.0 * 40.0 - 10.0));
  EXPECT_EQ(plain.Of({-1.0}).at(0), 7.0 * -3.0 * (2.0 * 10.0 - 40.0 + 0.5 * 10.0));
  EXPECT_EQ(plain.Of({3.0}).at(0), 7.0 * 9.0 * (2.0 * 90.0 - 10.0 + 0.5 * 40.0));
  plain.Reset();
  EXPECT_EQ(plain.Of({1.0}).at(0), 7.0 * 3.0 * (2.0 * 10.0));
  config.conv_bias = true;
  EXPECT_EQ(ReferenceShortConv(config, "", find).Of({1.0}).at(0),
            7.0 * (3.0 + 1.0) * (2.0 * 10.0 + 4.0) - 1.0);
}

// Two experts of one channel and no shared one, with numbers that can be checked by hand.
TEST(ReferenceMixture, AddsWhatTheChosenExpertsWrite) {
  ReferenceConfig config;
  config.hidden_size = 1;
  config.experts = {.num_experts = 3, .num_experts_per_tok = 2, .intermediate_size = 1};
  std::map<std::string, std::vector<float>> tensors = {{"mlp.gate.weight", {0.0f, 1.0f, 1.0f}}};
  for (const char* expert : {"0", "1", "2"}) {
    const std::string module = std::string("mlp.experts.") + expert + ".";
    const auto number = static_cast<float>(expert[0] - '0');
    tensors[module + "gate_proj.weight"] = {1.0f};
    tensors[module + "up_proj.weight"] = {1.0f};
    tensors[module + "down_proj.weight"] = {number};
  }
  const ReferenceMixture::FindTensor find = [&](const std::string& name, const auto& /*shape*/) {
    return tensors.at(name).data();
  };
  const double inner =
      2.0 * (2.0 / (1.0 + std::exp(-2.0)));  // What every expert makes of the input 2.
  const double e = std::exp(2.0);
  const ReferenceMixture whole(config, "", find);
  EXPECT_EQ(whole.ChosenBy({2.0}), (std::vector<size_t>{1, 2}));
  EXPECT_NEAR(whole.Of({2.0}).at(0), inner * (1.0 + 2.0) * e / (1.0 + 2.0 * e), 1e-12);
  config.experts.norm_topk_prob = true;
  EXPECT_NEAR(ReferenceMixture(config, "", find).Of({2.0}).at(0), inner * 1.5, 1e-12);
  // The first of equal experts is chosen; a negative input prefers the other one.
  EXPECT_EQ(whole.ChosenBy({-2.0}), (std::vector<size_t>{0, 1}));
}

}  // namespace
}  // namespace cria::reference
