#include "reference/hugging_face_families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/hugging_face_directory.h"
#include "reference/reference_decoder.h"
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
      {"Granite", [](ReferenceConfig& c) { c.logits_scaling = 1.0; }}};
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

}  // namespace
}  // namespace cria::reference
