// What a converted file has of its checkpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/convert_fixture.h"
#include "converter/test_checkpoint.h"
#include "golden/test_data.h"
#include "model/file_layout.h"
#include "model/model_file.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::CheckpointSpec;
using testing::HasSubstr;
using testing::Not;

TEST_F(ConvertTest, TheRuntimeReadsEveryScheme) {
  Make(support::SpecPadded());
  for (const Scheme weights : {Scheme::kQb4w, Scheme::kQc8w, Scheme::kF32}) {
    const auto report = Run({.weights = weights});
    ASSERT_TRUE(report) << report.error().message();
    const auto model = ModelFile::Open(output_.string());
    ASSERT_TRUE(model) << model.error().message();
    const Status payload = model->VerifyPayload();
    EXPECT_TRUE(payload) << payload.error().message();
    EXPECT_EQ(model->digest(), report->digest);
    EXPECT_EQ(model->size_bytes(), report->file_bytes);
    EXPECT_EQ(model->name(), "checkpoint");
    EXPECT_THAT(std::string(model->producer()), HasSubstr("cria-convert "));
    EXPECT_EQ(model->tensor(TensorRole::kDownProj, 1).layout.scheme, weights);
    const Scheme tables = weights == Scheme::kF32 ? Scheme::kF32 : Scheme::kQc8w;
    EXPECT_EQ(model->tensor(TensorRole::kEmbedTokens).layout.scheme, tables);
    EXPECT_EQ(model->tensor(TensorRole::kLmHead).layout.scheme, tables);
  }
}

TEST_F(ConvertTest, WhatLlamaLacksIsAFeatureThatReadersMustKnow) {
  // The file does not have the schema's names, so these can only be names of features.
  const auto features_of = [&](const CheckpointSpec& spec) {
    Make(spec);
    const std::string bytes = RunToBytes({});
    std::vector<std::string> found;
    for (const char* name :
         {"sliding_window", "qkv_bias", "o_bias", "mlp_bias", "qk_norm", "layer_kinds"}) {
      if (bytes.contains(name)) found.emplace_back(name);
    }
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(features_of(support::SpecGqa()), Names());
  EXPECT_EQ(features_of(support::SpecMistral()), Names{"sliding_window"});
  EXPECT_EQ(features_of(support::SpecQwen2()), Names{"qkv_bias"});
  EXPECT_EQ(features_of(support::SpecQwen2Window()), (Names{"sliding_window", "qkv_bias"}));
  EXPECT_EQ(features_of(support::SpecQwen3()), Names{"qk_norm"});
  EXPECT_EQ(features_of(support::SpecMinistral()), (Names{"sliding_window", "layer_kinds"}));
  EXPECT_EQ(features_of(support::SpecQwen3Window()), (Names{"qk_norm", "layer_kinds"}));
  EXPECT_EQ(features_of(support::SpecBiases()), (Names{"qkv_bias", "o_bias", "mlp_bias"}));
}

TEST_F(ConvertTest, SoIsANormalizer) {
  Make(support::SpecQwen2());
  EXPECT_THAT(RunToBytes({}), Not(HasSubstr("normalize_nfc")));
  const auto path = checkpoint_ / "tokenizer.json";
  auto tokenizer = nlohmann::json::parse(support::ReadFile(path));
  tokenizer["normalizer"] = {{"type", "NFC"}};
  support::WriteFile(path, tokenizer.dump());
  EXPECT_THAT(RunToBytes({}), HasSubstr("normalize_nfc"));
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->vocabulary().normalize_nfc);
}

TEST_F(ConvertTest, FieldsOfEveryFamilyAreInTheFile) {
  const auto config_of = [&](const CheckpointSpec& spec) {
    Make(spec);
    EXPECT_TRUE(Run({}));
    const auto model = ModelFile::Open(output_.string());
    EXPECT_TRUE(model) << model.error().message();
    return model->config();
  };
  const ModelConfig mistral = config_of(support::SpecMistral());
  EXPECT_EQ(mistral.architecture, "MistralForCausalLM");
  EXPECT_EQ(mistral.layer_kinds[0].sliding_window, 12u);
  EXPECT_EQ(mistral.head_dim, 24u);
  const ModelConfig qwen3 = config_of(support::SpecQwen3Biases());
  EXPECT_EQ(qwen3.architecture, "Qwen3ForCausalLM");
  EXPECT_TRUE(qwen3.qk_norm && qwen3.qkv_bias && qwen3.o_bias);
  EXPECT_FALSE(qwen3.mlp_bias);
  const ModelConfig dynamic = config_of(support::SpecDynamicRope());
  EXPECT_EQ(dynamic.layer_kinds[0].rope_scaling.type, RopeScaling::Type::kDynamic);
  EXPECT_EQ(dynamic.layer_kinds[0].rope_scaling.factor, 4.0f);
  EXPECT_EQ(dynamic.longest_context(), 128u);
  const RopeScaling yarn = config_of(support::SpecYarnRope()).layer_kinds[0].rope_scaling;
  EXPECT_EQ(yarn.type, RopeScaling::Type::kYarn);
  EXPECT_EQ(yarn.original_max_position_embeddings, 32u);
  EXPECT_EQ(yarn.attention_factor, 1.25f);
  EXPECT_EQ(yarn.beta_fast, 4.0f);
  EXPECT_EQ(yarn.beta_slow, 0.25f);
  EXPECT_TRUE(yarn.truncate);
}

TEST_F(ConvertTest, KindsOfLayersAreInTheFile) {
  Make(support::SpecTwoRopes());
  ASSERT_TRUE(Run({}));
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  const ModelConfig& config = model->config();
  EXPECT_EQ(config.architecture, "MinistralForCausalLM");
  EXPECT_EQ(config.kind_of_layer, (std::vector<uint8_t>{0, 0, 1}));
  const LayerKind windowed = {.sliding_window = 12, .rope_theta = 1e4f};
  const LayerKind full = {.rope_theta = 1e6f,
                          .rope_scaling = {.type = RopeScaling::Type::kYarn,
                                           .factor = 4.0f,
                                           .original_max_position_embeddings = 32,
                                           .attention_factor = 1.25f,
                                           .beta_fast = 4.0f,
                                           .beta_slow = 0.25f}};
  EXPECT_EQ(config.layer_kinds, (std::vector<LayerKind>{windowed, full}));
}

TEST_F(ConvertTest, F32WeightsAreThoseOfTheCheckpointFusedByRows) {
  CheckpointSpec spec = support::SpecBiases();
  spec.config.architecture = "Qwen3ForCausalLM";
  spec.config.mlp_bias = false;
  spec.config.qk_norm = true;
  Make(spec);
  ASSERT_TRUE(Run({.weights = Scheme::kF32}));
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  const auto expect = [&](TensorRole role, int layer, const std::vector<std::string>& names) {
    const reference::ReferenceModel original = support::MakeModel(spec);
    std::vector<float> expected;
    for (const std::string& name : names) {
      const auto& values = original.tensors.at(name).values;
      expected.insert(expected.end(), values.begin(), values.end());
    }
    const StoredTensor& tensor = model->tensor(role, layer);
    ASSERT_EQ(tensor.data.bytes, expected.size() * sizeof(float));
    std::vector<float> stored(expected.size());
    ASSERT_TRUE(model->Read(tensor.data, std::as_writable_bytes(std::span(stored))));
    EXPECT_EQ(stored, expected);
  };
  const std::string layer = "model.layers.1.";
  expect(TensorRole::kEmbedTokens, kNoLayer, {"model.embed_tokens.weight"});
  expect(TensorRole::kQkvProj, 1,
         {layer + "self_attn.q_proj.weight", layer + "self_attn.k_proj.weight",
          layer + "self_attn.v_proj.weight"});
  expect(TensorRole::kQkvBias, 1,
         {layer + "self_attn.q_proj.bias", layer + "self_attn.k_proj.bias",
          layer + "self_attn.v_proj.bias"});
  expect(TensorRole::kQNorm, 1, {layer + "self_attn.q_norm.weight"});
  expect(TensorRole::kKNorm, 1, {layer + "self_attn.k_norm.weight"});
  expect(TensorRole::kOBias, 1, {layer + "self_attn.o_proj.bias"});
  expect(TensorRole::kGateUpProj, 1,
         {layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight"});
  expect(TensorRole::kPostAttentionLayernorm, 1, {layer + "post_attention_layernorm.weight"});
  expect(TensorRole::kLmHead, kNoLayer, {"lm_head.weight"});
}

TEST_F(ConvertTest, BiasesOfTheFeedForwardAreFusedToo) {
  const CheckpointSpec spec = support::SpecBiases();
  Make(spec);
  ASSERT_TRUE(Run({}));
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  const reference::ReferenceModel original = support::MakeModel(spec);
  std::vector<float> expected = original.tensors.at("model.layers.0.mlp.gate_proj.bias").values;
  const std::vector<float>& up = original.tensors.at("model.layers.0.mlp.up_proj.bias").values;
  expected.insert(expected.end(), up.begin(), up.end());
  std::vector<float> stored(expected.size());
  const StoredTensor& bias = model->tensor(TensorRole::kGateUpBias, 0);
  EXPECT_EQ(bias.layout.scheme, Scheme::kF32);
  ASSERT_TRUE(model->Read(bias.data, std::as_writable_bytes(std::span(stored))));
  EXPECT_EQ(stored, expected);
  EXPECT_EQ(model->tensor(TensorRole::kDownBias, 0).data.bytes, 64 * sizeof(float));
}

TEST_F(ConvertTest, ATiedHeadIsStoredOnlyWhereItDiffers) {
  Make(support::SpecTied());
  const auto shared = Run({});
  ASSERT_TRUE(shared) << shared.error().message();
  {
    const auto model = ModelFile::Open(output_.string());
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(&model->tensor(TensorRole::kLmHead), &model->tensor(TensorRole::kEmbedTokens));
  }
  const auto stored = Run({.embedding = Scheme::kF32, .head = Scheme::kQb4w});
  ASSERT_TRUE(stored) << stored.error().message();
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->tensor(TensorRole::kLmHead).layout.scheme, Scheme::kQb4w);
  EXPECT_EQ(model->tensor(TensorRole::kEmbedTokens).layout.scheme, Scheme::kF32);
  EXPECT_EQ(stored->num_parameters, shared->num_parameters);
}

TEST_F(ConvertTest, BytesDoNotDependOnTheNumberOfThreads) {
  CheckpointSpec spec = support::SpecGqa();
  // Every matrix of this width has several slices.
  spec.config.intermediate_size = 20000;
  Make(spec);
  for (const Scheme weights : {Scheme::kQb4w, Scheme::kQc8w}) {
    ConvertOptions options = {.weights = weights, .num_threads = 1};
    const std::string one = RunToBytes(options);
    for (const size_t num_threads : {2, 3, 8}) {
      options.num_threads = num_threads;
      EXPECT_TRUE(RunToBytes(options) == one) << num_threads;
    }
  }
}

TEST_F(ConvertTest, StorageTypesAndShardsMakeNoDifference) {
  CheckpointSpec spec = support::SpecGqa();
  spec.format.storage = support::StorageType::kBf16;
  Make(spec);
  const std::string one = RunToBytes({});
  spec.format.shards = 3;
  std::filesystem::remove_all(checkpoint_);
  Make(spec);
  EXPECT_TRUE(RunToBytes({}) == one);
}

TEST_F(ConvertTest, LiesInTheFileAsTheLayoutSays) {
  Make(support::SpecPadded());
  const std::string bytes = RunToBytes({.block_size = 64});
  EXPECT_EQ(bytes.substr(0, 8), "CRIAMODL");
  EXPECT_EQ(bytes.substr(68, 4), "CRIA");
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  uint64_t end = 0;
  for (const StoredTensor& tensor : model->tensors()) {
    EXPECT_EQ(tensor.data.offset % kTensorAlignment, 0u);
    EXPECT_EQ(tensor.scales.offset % kTensorAlignment, 0u);
    end = std::max(
        {end, tensor.data.offset + tensor.data.bytes, tensor.scales.offset + tensor.scales.bytes});
  }
  EXPECT_EQ(model->tensor(TensorRole::kEmbedTokens).data.offset % kSectionAlignment, 0u);
  EXPECT_EQ(model->tensor(TensorRole::kInputLayernorm, 0).data.offset % kSectionAlignment, 0u);
  EXPECT_EQ(model->tensor(TensorRole::kQkvProj, 0).data.offset % kSectionAlignment, 0u);
  ASSERT_GE(bytes.size(), end + kTrailingSlackBytes);
  EXPECT_EQ(bytes.find_first_not_of('\0', end), std::string::npos);
}

TEST_F(ConvertTest, ConvertsTheDemo) {
  const auto report = Convert(support::kDemoCheckpoint, output_, {});
  ASSERT_TRUE(report) << report.error().message();
  // The embedding, which is the head; in each layer attention, the feed-forward and two norms.
  constexpr size_t kLayer = 256 * (256 + 2 * 128 + 256) + 3 * 256 * 640 + 2 * 256;
  EXPECT_EQ(report->num_parameters, 1536u * 256 + 4 * kLayer + 256);
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->VerifyPayload());
  EXPECT_EQ(model->tensor(TensorRole::kDownProj, 3).layout.padded_input_channels, 640u);
}

TEST_F(ConvertTest, ConvertsACheckpointThatSomebodyTrained) {
  CRIA_NEEDS_TEST_DATA("stories260K");
  const auto report = Convert(ExternalTestData() / "stories260K", output_, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->num_parameters, 260032u);
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->VerifyPayload());
  // 172 input channels become 192.
  EXPECT_EQ(model->tensor(TensorRole::kDownProj, 0).layout.padded_input_channels, 192u);
}

}  // namespace
}  // namespace cria
