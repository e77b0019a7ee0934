// What becomes of the weights of families whose mathematics is partly folded into them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "converter/hugging_face/safetensors.h"
#include "converter/open_checkpoint.h"
#include "core/format.h"
#include "model/model_file.h"
#include "support/family_checkpoint.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<float> ValuesOf(const TensorSource& source) {
  std::vector<float> values(source.num_elements());
  EXPECT_TRUE(TensorReader().Read(source, 0, values));
  return values;
}

class FamiliesTest : public ::testing::Test {
 protected:
  void Open(const char* name) {
    support::WriteFamilyDirectory(support::FamilyNamed(name), folder_);
    auto stored = ReadSafetensors(folder_ / "model.safetensors");
    auto opened = OpenCheckpoint(folder_);
    ASSERT_TRUE(stored && opened);
    stored_ = std::move(*stored);
    checkpoint_ = std::move(*opened);
  }

  // Expects that each element of the tensor is what `change` makes of the stored one, in this row.
  void ExpectChanged(const std::string& name,
                     const std::function<double(double stored, size_t row)>& change) {
    const TensorSource& source = checkpoint_.tensors.at(name);
    const std::vector<float> stored = ValuesOf(stored_.at(name));
    const std::vector<float> read = ValuesOf(source);
    ASSERT_EQ(read.size(), stored.size()) << name;
    const size_t columns = read.size() / source.shape.front();
    for (size_t i = 0; i < read.size(); ++i) {
      ASSERT_NEAR(read[i], change(stored[i], i / columns), 1e-6) << name << " " << i;
    }
  }
  void ExpectFactor(const std::string& name, double factor) {
    ExpectChanged(name, [=](double stored, size_t) { return stored * factor; });
  }
  // Expects a norm that multiplies by one more than its weight.
  void ExpectNorm(const std::string& name, double factor) {
    ExpectChanged(name, [=](double stored, size_t) { return (1.0 + stored) * factor; });
  }

  support::TemporaryDirectory directory_;
  std::filesystem::path folder_ = directory_.path() / "model";
  TensorSources stored_;
  Checkpoint checkpoint_;
};

TEST_F(FamiliesTest, GemmasEmbeddingIsScaledAndItsNormsAreOneMore) {
  Open("Gemma");  // Tied.
  ExpectFactor("model.embed_tokens.weight", 8.0);
  ExpectNorm("model.norm.weight", 1.0 / 8.0);
  ExpectNorm("model.layers.1.input_layernorm.weight", 1.0);
  ExpectNorm("model.layers.1.post_attention_layernorm.weight", 1.0);
  ExpectFactor("model.layers.1.self_attn.q_proj.weight", 1.0);
  ExpectFactor("model.layers.1.mlp.down_proj.weight", 1.0);
  Open("GemmaBiases");  // Untied.
  ExpectFactor("model.embed_tokens.weight", 8.0);
  ExpectFactor("lm_head.weight", 1.0);
  ExpectNorm("model.norm.weight", 1.0);
}

TEST_F(FamiliesTest, ScoresAreScaledByQueriesOrTheirNorm) {
  const double factor = std::sqrt(16.0 / 24.0);
  Open("Gemma2NoCaps");
  ExpectFactor("model.layers.0.self_attn.q_proj.weight", factor);
  ExpectFactor("model.layers.0.self_attn.k_proj.weight", 1.0);
  ExpectNorm("model.layers.0.pre_feedforward_layernorm.weight", 1.0);
  ExpectNorm("model.layers.0.post_feedforward_layernorm.weight", 1.0);
  Open("Gemma3NewForm");
  ExpectNorm("model.layers.0.self_attn.q_norm.weight", factor);
  ExpectNorm("model.layers.0.self_attn.k_norm.weight", 1.0);
  ExpectFactor("model.layers.0.self_attn.q_proj.weight", 1.0);
  ExpectFactor("model.layers.0.self_attn.q_proj.bias", 1.0);
}

TEST_F(FamiliesTest, GranitesMultipliersAreInItsWeights) {
  Open("Granite");  // Tied; 6 for embeddings, 0.5 for logits, 0.125 for scores.
  ExpectFactor("model.embed_tokens.weight", 6.0);
  ExpectFactor("model.norm.weight", 1.0 / (0.5 * 6.0));
  ExpectFactor("model.layers.0.self_attn.q_proj.weight", 0.125 * 4.0);
  ExpectFactor("model.layers.0.self_attn.o_proj.weight", 0.22);
  ExpectFactor("model.layers.0.mlp.down_proj.weight", 0.22);
  ExpectFactor("model.layers.0.mlp.up_proj.weight", 1.0);
  Open("GraniteBiases");  // Untied; 2 for logits, 0.35 for scores.
  ExpectFactor("model.norm.weight", 0.5);
  ExpectFactor("lm_head.weight", 1.0);
  ExpectFactor("model.layers.0.self_attn.q_proj.bias", 0.35 * 4.0);
  ExpectFactor("model.layers.0.self_attn.k_proj.bias", 1.0);
  ExpectFactor("model.layers.0.self_attn.o_proj.bias", 0.22);
  ExpectFactor("model.layers.0.mlp.down_proj.bias", 0.22);
}

TEST_F(FamiliesTest, FusedProjectionsAreSplitByRows) {
  Open("Phi3");
  EXPECT_EQ(checkpoint_.tensors.size(), 2u * 9 + 3);
  const std::vector<float> fused = ValuesOf(stored_.at("model.layers.1.self_attn.qkv_proj.weight"));
  std::vector<float> joined;
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    const std::vector<float> values =
        ValuesOf(checkpoint_.tensors.at(Format("model.layers.1.self_attn.{}.weight", part)));
    joined.insert(joined.end(), values.begin(), values.end());
  }
  EXPECT_EQ(joined, fused);
  const std::vector<float> gate_up = ValuesOf(stored_.at("model.layers.0.mlp.gate_up_proj.weight"));
  EXPECT_EQ(ValuesOf(checkpoint_.tensors.at("model.layers.0.mlp.up_proj.weight")),
            std::vector<float>(gate_up.begin() + 160 * 64, gate_up.end()));
}

// The factor of longrope is one of cosines and sines: if they do not rotate all channels, it is
// only one of those that they do.
TEST_F(FamiliesTest, AFactorOfRotatedChannelsIsInTheirQueries) {
  Open("Phi4Mini");
  const std::string name = "model.layers.0.self_attn.qkv_proj.weight";
  const std::vector<float> fused = ValuesOf(stored_.at(name));
  const std::vector<float> queries =
      ValuesOf(checkpoint_.tensors.at("model.layers.0.self_attn.q_proj.weight"));
  const double factor = 1.0 + std::log(4.0) / std::log(32.0);
  ASSERT_EQ(queries.size(), 64u * 64);
  for (size_t i = 0; i < queries.size(); ++i) {
    const bool is_rotated = i / 64 % 16 < 12;
    ASSERT_NEAR(queries[i], fused[i] * (is_rotated ? factor : 1.0), 1e-6) << i;
  }
}

TEST_F(FamiliesTest, TheTapsOfConvolutionsAreTransposed) {
  Open("Lfm2Biases");
  const std::string name = "model.layers.1.conv.conv.weight";
  const TensorSource& source = checkpoint_.tensors.at(name);
  ASSERT_EQ(source.shape, (std::vector<uint64_t>{4, 64}));
  const std::vector<float> stored = ValuesOf(stored_.at(name));
  const std::vector<float> taps = ValuesOf(source);
  for (size_t tap = 0; tap < 4; ++tap) {
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(taps[tap * 64 + i], stored[i * 4 + tap]);
  }
  // A part of them, which neither begins nor ends with a tap.
  std::vector<float> part(70);
  ASSERT_TRUE(TensorReader().Read(source, 33, part));
  EXPECT_TRUE(std::ranges::equal(part, std::span(taps).subspan(33, 70)));
  EXPECT_FALSE(CanKeepCodes(source));
}

TEST_F(FamiliesTest, TheFactorOfExpertsIsInWhatTheyWrite) {
  Open("Lfm2MoeScaled");
  EXPECT_EQ(ValuesOf(checkpoint_.tensors.at("model.layers.2.mlp.gate.weight")),
            ValuesOf(stored_.at("model.layers.2.feed_forward.gate.weight")));
  const std::vector<float> stored =
      ValuesOf(stored_.at("model.layers.2.feed_forward.experts.3.w2.weight"));
  const std::vector<float> read =
      ValuesOf(checkpoint_.tensors.at("model.layers.2.mlp.experts.3.down_proj.weight"));
  for (size_t i = 0; i < read.size(); ++i) ASSERT_NEAR(read[i], 2.5f * stored[i], 1e-6);
  EXPECT_EQ(ValuesOf(checkpoint_.tensors.at("model.layers.2.mlp.experts.3.up_proj.weight")),
            ValuesOf(stored_.at("model.layers.2.feed_forward.experts.3.w3.weight")));
  Open("Lfm2Moe");  // The first layer is dense.
  EXPECT_EQ(ValuesOf(checkpoint_.tensors.at("model.layers.0.mlp.down_proj.weight")),
            ValuesOf(stored_.at("model.layers.0.feed_forward.w2.weight")));
  EXPECT_EQ(ValuesOf(checkpoint_.tensors.at("model.layers.1.mlp.expert_bias")),
            ValuesOf(stored_.at("model.layers.1.feed_forward.expert_bias")));
}

TEST_F(FamiliesTest, TapsMustFitTheConfiguration) {
  support::WriteFamilyDirectory(support::FamilyNamed("Lfm2"), folder_);
  auto config = nlohmann::json::parse(support::ReadFile(folder_ / "config.json"));
  config["conv_L_cache"] = 4;
  support::WriteFile(folder_ / "config.json", config.dump());
  const auto opened = OpenCheckpoint(folder_);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(),
              HasSubstr("conv.conv.weight\" has shape [64, 1, 3], but config.json calls for "
                        "[64, 1, 4]"));
}

TEST_F(FamiliesTest, AFileOfShortConvolutionsHasTheirTensors) {
  const auto output = (directory_.path() / "out.cria").string();
  support::WriteFamilyDirectory(support::FamilyNamed("Lfm2Biases"), folder_);
  const auto report = Convert(folder_, output, {.weights = Scheme::kQb4w});
  ASSERT_TRUE(report) << report.error().message();
  const auto file = ModelFile::Open(output);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->config().conv_L_cache, 4u);
  EXPECT_TRUE(file->config().conv_bias);
  EXPECT_FALSE(file->config().layer_kind(0).short_conv);
  EXPECT_TRUE(file->config().layer_kind(1).short_conv);
  EXPECT_EQ(file->tensor(TensorRole::kConvInProj, 1).layout.scheme, Scheme::kQb4w);
  EXPECT_EQ(file->tensor(TensorRole::kConvWeight, 1).layout.scheme, Scheme::kF32);
  EXPECT_EQ(file->tensor(TensorRole::kConvWeight, 1).layout.input_channels, 4u * 64);
}

// The rows of each head's query and of its gates alternate.
TEST_F(FamiliesTest, QueriesAndGatesOfTheOutputAreSplitByHeads) {
  Open("Qwen35");
  const std::vector<float> fused = ValuesOf(stored_.at("model.layers.3.self_attn.q_proj.weight"));
  const TensorSource& query = checkpoint_.tensors.at("model.layers.3.self_attn.q_proj.weight");
  const TensorSource& gate = checkpoint_.tensors.at("model.layers.3.self_attn.gate_proj.weight");
  ASSERT_EQ(query.shape, (std::vector<uint64_t>{64, 64}));
  ASSERT_EQ(gate.shape, query.shape);
  const std::vector<float> queries = ValuesOf(query);
  const std::vector<float> gates = ValuesOf(gate);
  for (size_t i = 0; i < queries.size(); ++i) {
    const size_t row = i / 64;
    const size_t stored = (row / 16 * 32 + row % 16) * 64 + i % 64;
    ASSERT_EQ(queries[i], fused[stored]);
    ASSERT_EQ(gates[i], fused[stored + size_t{16} * 64]);
  }
  // A part that begins within a head.
  std::vector<float> part(size_t{20} * 64);
  ASSERT_TRUE(TensorReader().Read(gate, 10 * 64, part));
  EXPECT_TRUE(std::ranges::equal(part, std::span(gates).subspan(10 * 64, part.size())));
}

TEST_F(FamiliesTest, NormsOfQwenAreOneMoreButNotThatOfLinearAttention) {
  Open("Qwen35");
  ExpectNorm("model.norm.weight", 1.0);
  ExpectNorm("model.layers.0.input_layernorm.weight", 1.0);
  ExpectNorm("model.layers.3.self_attn.q_norm.weight", 1.0);
  ExpectFactor("model.layers.0.linear_attn.norm.weight", 1.0);
  ExpectChanged("model.layers.0.linear_attn.A_log",
                [](double stored, size_t) { return std::exp(stored); });
  ExpectFactor("model.layers.0.linear_attn.dt_bias", 1.0);
}

TEST_F(FamiliesTest, ProjectionsOfQwen3NextAreSplitByHeadsOfKeys) {
  Open("Qwen3Next");
  const std::vector<float> fused =
      ValuesOf(stored_.at("model.layers.0.linear_attn.in_proj_qkvz.weight"));
  // Two heads of keys, each with 16 rows of a query, 16 of a key, 48 of values and 48 of gates.
  const auto expect = [&](const char* name, size_t first, size_t count) {
    const std::vector<float> values =
        ValuesOf(checkpoint_.tensors.at(Format("model.layers.0.linear_attn.{}.weight", name)));
    ASSERT_EQ(values.size(), 2 * count * 64);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t row = i / 64;
      ASSERT_EQ(values[i], fused[(row / count * 128 + first + row % count) * 64 + i % 64]) << name;
    }
  };
  expect("q_proj", 0, 16);
  expect("k_proj", 16, 16);
  expect("v_proj", 32, 48);
  expect("z_proj", 80, 48);
  const std::vector<float> ba =
      ValuesOf(stored_.at("model.layers.0.linear_attn.in_proj_ba.weight"));
  const std::vector<float> a =
      ValuesOf(checkpoint_.tensors.at("model.layers.0.linear_attn.a_proj.weight"));
  // Row 3 is the first one of the second head of keys.
  EXPECT_TRUE(
      std::ranges::equal(std::span(a).subspan(3 * 64, 64), std::span(ba).subspan(9 * 64, 64)));
}

TEST_F(FamiliesTest, DraftsAndPicturesOfQwenAreLeftOutWithANote) {
  Open("Qwen35Vision");
  EXPECT_FALSE(checkpoint_.tensors.contains("mtp.fc.weight"));
  EXPECT_FALSE(checkpoint_.tensors.contains("model.visual.merger.norm.weight"));
  EXPECT_TRUE(checkpoint_.tensors.contains("model.layers.0.linear_attn.q_proj.weight"));
  std::string notes;
  for (const std::string& note : checkpoint_.notes) notes += note + '\n';
  EXPECT_THAT(notes, HasSubstr("drafts tokens (mtp, 1 tensors) is left out"));
  EXPECT_THAT(notes, HasSubstr("the vision part of the checkpoint (1 tensors)"));
}

TEST_F(FamiliesTest, TheLayerThatGuessesIsOneBehindTheOthers) {
  Open("Qwen35Mtp");
  EXPECT_EQ(checkpoint_.config.mtp_num_hidden_layers, 1u);
  EXPECT_TRUE(checkpoint_.tensors.contains("model.layers.4.mtp.fc.weight"));
  // Its norms add 1 to their weights as others do, and its gates are behind its queries.
  for (const char* const norm : {"mtp.norm", "mtp.embedding_norm", "mtp.hidden_norm",
                                 "input_layernorm", "self_attn.q_norm"}) {
    EXPECT_EQ(checkpoint_.tensors.at(Format("model.layers.4.{}.weight", norm)).addend, 1.0f);
  }
  EXPECT_TRUE(checkpoint_.tensors.contains("model.layers.4.self_attn.gate_proj.weight"));
  for (const std::string& note : checkpoint_.notes) EXPECT_THAT(note, Not(HasSubstr("mtp")));
}

TEST_F(FamiliesTest, MatricesOfLinearAttentionMustFitTheConfiguration) {
  support::WriteFamilyDirectory(support::FamilyNamed("Qwen35"), folder_);
  auto config = nlohmann::json::parse(support::ReadFile(folder_ / "config.json"));
  config["linear_num_value_heads"] = 8;
  support::WriteFile(folder_ / "config.json", config.dump());
  const auto opened = OpenCheckpoint(folder_);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("but config.json calls for"));
}

TEST_F(FamiliesTest, AFileOfLinearAttentionHasItsTensors) {
  const auto output = (directory_.path() / "out.cria").string();
  support::WriteFamilyDirectory(support::FamilyNamed("Qwen35"), folder_);
  const auto report = Convert(folder_, output, {.weights = Scheme::kQb4w});
  ASSERT_TRUE(report) << report.error().message();
  const auto file = ModelFile::Open(output);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->config().linear_num_value_heads, 4u);
  EXPECT_FALSE(file->config().linear_tiled_value_heads);
  EXPECT_TRUE(file->config().layer_kind(0).linear_attention);
  EXPECT_EQ(file->tensor(TensorRole::kLinearInProj, 0).layout.scheme, Scheme::kQb4w);
  EXPECT_EQ(file->tensor(TensorRole::kLinearInProj, 0).layout.output_channels, 2u * 32 + 2 * 64);
  EXPECT_EQ(file->tensor(TensorRole::kLinearBaProj, 0).layout.scheme, Scheme::kF32);
  EXPECT_EQ(file->tensor(TensorRole::kLinearConvWeight, 0).layout.input_channels, 4u * 128);
  EXPECT_EQ(file->tensor(TensorRole::kQkvProj, 3).layout.output_channels, 2u * 64 + 2 * 32);
}

TEST_F(FamiliesTest, RefusesFusedProjectionsThatDoNotFit) {
  support::WriteFamilyDirectory(support::FamilyNamed("Phi3"), folder_);
  auto config = nlohmann::json::parse(support::ReadFile(folder_ / "config.json"));
  config["num_key_value_heads"] = 4;
  support::WriteFile(folder_ / "config.json", config.dump());
  const auto opened = OpenCheckpoint(folder_);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("qkv_proj.weight\" has shape [128, 64], but "
                                                  "config.json calls for 192 rows"));
}

TEST_F(FamiliesTest, OfAModelThatSeesTheTextModelIsConverted) {
  const auto output = directory_.path() / "out.cria";
  const auto convert = [&] {
    const auto report = Convert(folder_, output, {.weights = Scheme::kF32});
    EXPECT_TRUE(report) << report.error().message();
    return report.value_or(ConvertReport{});
  };
  support::WriteFamilyDirectory(support::FamilyNamed("Gemma3"), folder_);
  EXPECT_TRUE(convert().notes.empty());
  const std::string expected = support::ReadFile(output);
  support::WriteFamilyDirectory(support::FamilyNamed("Gemma3Vision"), folder_);
  const ConvertReport report = convert();
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("vision part of the checkpoint (2 tensors) is left out"));
  EXPECT_EQ(support::ReadFile(output) == expected, true);
  // Older files have other names of the same length.
  std::string weights = support::ReadFile(folder_ / "model.safetensors");
  const std::string newer = "\"model.language_model.";
  for (size_t at = weights.find(newer); at != std::string::npos; at = weights.find(newer, at)) {
    weights.replace(at, newer.size(), "\"language_model.model.");
  }
  support::WriteFile(folder_ / "model.safetensors", weights);
  convert();
  EXPECT_EQ(support::ReadFile(output) == expected, true);
}

// Where a size decides the schemes, the router keeps its own. The matrices are those of all experts
// together, those of the shared one, and those of attention; the embedding and the head are tables.
TEST_F(FamiliesTest, OfAMixtureTheSizeCanBeChosen) {
  constexpr size_t kTables = 2;
  const auto output = (directory_.path() / "out.cria").string();
  support::WriteFamilyDirectory(support::FamilyNamed("Qwen2Moe"), folder_);
  ConvertOptions options;
  options.target = {.bits_per_weight = 6.0};
  options.error_texts = {"a text of some words"};
  const auto report = Convert(folder_, output, options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->schemes.size(), 2u * 6u + kTables);
  EXPECT_EQ(report->errors.size(), 2u * 6u);
  const auto file = ModelFile::Open(output);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->tensor(TensorRole::kRouter, 0).layout.scheme, Scheme::kF32);
}

}  // namespace
}  // namespace cria
