#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "converter/convert.h"
#include "converter/gguf/convert_to_bytes.h"
#include "converter/gguf/gguf_config.h"
#include "converter/gguf/stored_weights.h"
#include "converter/open_checkpoint.h"
#include "core/format.h"
#include "model/model_file.h"
#include "support/family_checkpoint.h"
#include "support/family_gguf.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using support::FamilyCheckpoint;

class GgufFamiliesTest : public ::testing::TestWithParam<FamilyCheckpoint> {
 protected:
  support::TemporaryDirectory directory_;
  std::filesystem::path output_ = directory_.path() / "out.cria";
};

// A Hugging Face folder and a GGUF file of the model, both named "model", give the same file.
TEST_P(GgufFamiliesTest, IsTheModelThatHuggingFacesFilesAre) {
  const auto folder = directory_.path() / "hf" / "model";
  const auto gguf = directory_.path() / "model.gguf";
  support::WriteFamilyDirectory(GetParam(), folder);
  support::WriteFamilyGguf(GetParam(), gguf);
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQb4w}) {
    const std::string expected = ConvertToBytes(folder, output_, {.weights = scheme});
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(ConvertToBytes(gguf, output_, {.weights = scheme}) == expected, true);
  }
}

// How far `values` are from `expected`, of the root mean square of these.
double RelativeDifference(const std::vector<float>& values, const std::vector<float>& expected) {
  double difference = 0.0, all = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double{values.at(i)} - expected[i], 2.0);
    all += std::pow(double{expected[i]}, 2.0);
  }
  return all == 0.0 ? difference : std::sqrt(difference / all);
}

// The files that other programs are measured with are the same models: no weight is further from
// the checkpoint's than four bits make it.
TEST_P(GgufFamiliesTest, RoundsMatricesToFourBits) {
  const auto folder = directory_.path() / "hf" / "model";
  const auto gguf = directory_.path() / "model.gguf";
  const auto expected_output = directory_.path() / "expected.cria";
  support::WriteFamilyDirectory(GetParam(), folder);
  support::WriteFamilyGguf(GetParam(), gguf, true);
  Unwrap(Convert(folder, expected_output, {.weights = Scheme::kF32}));
  Unwrap(Convert(gguf, output_, {.weights = Scheme::kF32}));
  const ModelFile expected = Unwrap(ModelFile::Open(expected_output));
  const ModelFile rounded = Unwrap(ModelFile::Open(output_));
  size_t num_rounded = 0;
  for (const TensorSpec& spec : ExpectedTensors(expected.config())) {
    const double difference = RelativeDifference(WeightsOf(rounded, spec.role, spec.layer),
                                                 WeightsOf(expected, spec.role, spec.layer));
    EXPECT_LT(difference, spec.is_vector() ? 1e-6 : 0.11) << spec.Name();
    num_rounded += difference > 0.05 ? 1 : 0;
  }
  // Experts in MXFP4 stay what they are.
  EXPECT_GE(num_rounded, 2 * expected.config().num_hidden_layers);
}

// Both files have the same codes, although those of Hugging Face's are in another order.
TEST(GgufOfGptOss, KeepsTheCodesThatHuggingFacesFilesHave) {
  const support::TemporaryDirectory directory;
  const auto folder = directory.path() / "hf" / "model";
  const auto gguf = directory.path() / "model.gguf";
  const FamilyCheckpoint family = support::FamilyNamed("GptOssMxfp4");
  support::WriteFamilyDirectory(family, folder);
  support::WriteFamilyGguf(family, gguf);
  const ConvertOptions options = {.weights = Scheme::kQc8w, .keeps_codes = true};
  const auto output = directory.path() / "out.cria";
  const std::string expected = ConvertToBytes(folder, output, options);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(ConvertToBytes(gguf, output, options) == expected, true);
}

class GgufFamiliesDamageTest : public ::testing::Test {
 protected:
  // Opens the family's file after `change`.
  Result<Checkpoint> Open(const char* name,
                          const std::function<void(support::GgufWriter&)>& change) {
    const FamilyCheckpoint family = support::FamilyNamed(name);
    support::FamilyGgufWriter writer(family.gguf_architecture, family.config_json);
    change(writer.writer());
    for (const support::TensorShape& tensor : support::FamilyTensors(family)) {
      writer.Add({tensor.shape, support::FamilyValues(family, tensor)}, tensor.name);
    }
    writer.Write(directory_.path() / "changed.gguf");
    return OpenCheckpoint(directory_.path() / "changed.gguf");
  }
  void ExpectRefused(const char* name, const std::function<void(support::GgufWriter&)>& change,
                     std::string_view reason) {
    const auto opened = Open(name, change);
    ASSERT_FALSE(opened) << reason;
    EXPECT_THAT(opened.error().message(), ::testing::HasSubstr(reason));
  }
  // Adds factors of rotary frequencies.
  static void AddFactors(support::GgufWriter& writer, const std::string& name, size_t count) {
    writer.AddTensor(name, {count}, support::StorageType::kF32, std::vector<float>(count, 1.0f));
  }

  support::TemporaryDirectory directory_;
};

TEST_F(GgufFamiliesDamageTest, RefusesLongropeThatIsIncomplete) {
  ExpectRefused(
      "Phi3",
      [](support::GgufWriter& writer) { AddFactors(writer, "rope_factors_long.weight", 8); },
      "has only one of the tensors");
  ExpectRefused(
      "Phi3",
      [](support::GgufWriter& writer) {
        AddFactors(writer, "rope_factors_long.weight", 8);
        AddFactors(writer, "rope_factors_short.weight", 7);
      },
      "rope_factors_short.weight\" has shape [7], but heads have 16");
  ExpectRefused(
      "Phi3",
      [](support::GgufWriter& writer) {
        AddFactors(writer, "rope_factors_long.weight", 8);
        AddFactors(writer, "rope_factors_short.weight", 8);
      },
      "phi3.rope.scaling.attn_factor is missing");
  ExpectRefused(
      "Phi3",
      [](support::GgufWriter& writer) { writer.Add("phi3.rope.scaling.attn_factor", 1.5f); },
      "phi3.rope.scaling.attn_factor is 1.5, which this version does not support");
  ExpectRefused(
      "SmolLm3", [](support::GgufWriter& writer) { AddFactors(writer, "rope_freqs.weight", 7); },
      "rope_freqs.weight\" has shape [7]");
}

TEST_F(GgufFamiliesDamageTest, GptOssHasItsOwnScores) {
  const auto with_function = [](uint32_t function) {
    return [=](support::GgufWriter& writer) { writer.Add("gpt-oss.expert_gating_func", function); };
  };
  const auto opened = Open("GptOssMxfp4", with_function(3));
  ASSERT_TRUE(opened) << opened.error().message();
  const ModelConfig& config = opened->config;
  EXPECT_TRUE(config.attn_sinks && config.router_bias && config.experts_bias);
  EXPECT_TRUE(config.qkv_bias && config.o_bias && config.norm_topk_prob);
  EXPECT_FLOAT_EQ(config.swiglu_alpha, 1.702f);
  EXPECT_EQ(config.swiglu_limit, 7.0f);
  EXPECT_EQ(config.layer_kind(0).sliding_window, 12u);
  EXPECT_EQ(config.layer_kind(1).sliding_window, 0u);
  EXPECT_FALSE(config.layer_kind(0).rope_scaling.truncate);
  ExpectRefused("GptOssMxfp4", with_function(1), "gpt-oss.expert_gating_func is 1, which");
}

TEST_F(GgufFamiliesDamageTest, GptOssHasAWindow) {
  GgufMetadata metadata("test");
  for (const char* key : {"embedding_length", "feed_forward_length", "context_length"}) {
    metadata.Add(std::string("gpt-oss.") + key, int64_t{64});
  }
  for (const char* key : {"block_count", "attention.head_count", "expert_count"}) {
    metadata.Add(std::string("gpt-oss.") + key, int64_t{4});
  }
  metadata.Add("gpt-oss.expert_used_count", int64_t{2});
  metadata.Add("gpt-oss.attention.layer_norm_rms_epsilon", 1e-5);
  metadata.Add("general.architecture", std::string("gpt-oss"));
  const auto architecture = ReadGgufArchitecture(metadata);
  ASSERT_TRUE(architecture);
  const auto config = ReadGgufConfig(metadata, *architecture, 300);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message(),
              ::testing::HasSubstr("gpt-oss.attention.sliding_window is missing"));
  metadata.Add("gpt-oss.attention.sliding_window", int64_t{128});
  EXPECT_TRUE(ReadGgufConfig(metadata, *architecture, 300));
}

TEST_F(GgufFamiliesDamageTest, LayersOfLfm2HaveHeadsOrAConvolution) {
  // Expects that these heads are refused, or read if there is no reason.
  const auto read = [&](std::vector<int64_t> counts, std::string_view reason) {
    GgufMetadata metadata("test");
    for (const char* key : {"embedding_length", "feed_forward_length", "context_length"}) {
      metadata.Add(std::string("lfm2.") + key, int64_t{64});
    }
    metadata.Add("lfm2.block_count", int64_t{3});
    metadata.Add("lfm2.attention.head_count", int64_t{4});
    metadata.Add("lfm2.attention.layer_norm_rms_epsilon", 1e-5);
    metadata.Add("lfm2.shortconv.l_cache", int64_t{3});
    metadata.Add("general.architecture", std::string("lfm2"));
    metadata.Add("lfm2.attention.head_count_kv", counts);
    const auto architecture = ReadGgufArchitecture(metadata);
    ASSERT_TRUE(architecture);
    const auto config = ReadGgufConfig(metadata, *architecture, 300);
    if (reason.empty()) {
      ASSERT_TRUE(config) << config.error().message();
      EXPECT_EQ(config->num_key_value_heads, 2u);
      EXPECT_EQ(config->conv_L_cache, 3u);
      EXPECT_TRUE(config->layer_kind(0).short_conv);
      EXPECT_FALSE(config->layer_kind(1).short_conv);
      return;
    }
    ASSERT_FALSE(config) << reason;
    EXPECT_THAT(config.error().message(), ::testing::HasSubstr(reason));
  };
  read({0, 2, 0}, "");
  read({0, 2}, "has 2 entries, but block_count is 3");
  read({0, 2, 4}, "has 4 for layer 2");
  read({0, -1, 0}, "has -1 for layer 1");
  read({0, 0, 0}, "is 0 for every layer");
}

// Metadata of Qwen3.5 with three layers, of which the last one attends.
GgufMetadata LinearMetadata() {
  GgufMetadata metadata("test");
  metadata.Add("general.architecture", std::string("qwen35"));
  for (const char* key : {"embedding_length", "feed_forward_length", "context_length"}) {
    metadata.Add(std::string("qwen35.") + key, int64_t{64});
  }
  metadata.Add("qwen35.block_count", int64_t{3});
  metadata.Add("qwen35.attention.head_count", int64_t{4});
  metadata.Add("qwen35.attention.head_count_kv", int64_t{2});
  metadata.Add("qwen35.attention.key_length", int64_t{16});
  metadata.Add("qwen35.attention.value_length", int64_t{16});
  metadata.Add("qwen35.rope.dimension_count", int64_t{4});
  metadata.Add("qwen35.attention.layer_norm_rms_epsilon", 1e-6);
  metadata.Add("qwen35.ssm.conv_kernel", int64_t{4});
  metadata.Add("qwen35.ssm.state_size", int64_t{16});
  metadata.Add("qwen35.ssm.group_count", int64_t{2});
  metadata.Add("qwen35.ssm.time_step_rank", int64_t{4});
  return metadata;
}

TEST_F(GgufFamiliesDamageTest, LayersOfQwen35AreLinearOrAttend) {
  // Which layers are linear, or the error.
  const auto read = [](GgufMetadata metadata) {
    const auto architecture = ReadGgufArchitecture(metadata);
    const auto config = ReadGgufConfig(metadata, *architecture, 300);
    if (!config) return config.error().message();
    std::string layers;
    for (size_t i = 0; i < config->num_hidden_layers; ++i) {
      layers += config->layer_kind(i).linear_attention ? 'l' : 'a';
    }
    return Format("{} {} {} {}", layers, config->linear_value_head_dim, config->rotary_dim,
                  config->linear_tiled_value_heads);
  };
  const auto with = [](const char* key, auto value) {
    GgufMetadata metadata = LinearMetadata();
    metadata.Add("qwen35.ssm.inner_size", int64_t{64});
    metadata.Add(key, value);
    return metadata;
  };
  EXPECT_EQ(read(with("qwen35.full_attention_interval", int64_t{3})), "lla 16 4 true");
  EXPECT_EQ(read(with("qwen35.full_attention_interval", int64_t{2})), "lal 16 4 true");
  EXPECT_EQ(read(with("qwen35.attention.recurrent_layers", std::vector<bool>{false, true, true})),
            "all 16 4 true");
  EXPECT_THAT(read(with("qwen35.attention.recurrent_layers", std::vector<bool>{false, true})),
              ::testing::HasSubstr("has 2 entries, but block_count is 3"));
  EXPECT_THAT(read(with("qwen35.full_attention_interval", int64_t{0})),
              ::testing::HasSubstr("full_attention_interval is 0"));
  // The last block guesses later tokens.
  EXPECT_EQ(read(with("qwen35.nextn_predict_layers", int64_t{1})), "ll 16 4 true");
  EXPECT_THAT(read(with("qwen35.nextn_predict_layers", int64_t{3})),
              ::testing::HasSubstr("nextn_predict_layers is 3, but block_count is 3"));
  GgufMetadata uneven = LinearMetadata();
  uneven.Add("qwen35.ssm.inner_size", int64_t{63});
  EXPECT_THAT(read(uneven), ::testing::HasSubstr("is 63, which 4 heads do not divide"));
}

TEST_F(GgufFamiliesDamageTest, LayersOfGraniteWithoutHeadsAreMambas) {
  const auto read = [](const std::vector<int64_t>& heads, int64_t inner_size, bool has_sizes) {
    GgufMetadata metadata("test");
    metadata.Add("general.architecture", std::string("granitehybrid"));
    for (const char* key : {"embedding_length", "feed_forward_length", "context_length"}) {
      metadata.Add(std::string("granitehybrid.") + key, int64_t{64});
    }
    metadata.Add("granitehybrid.block_count", int64_t{3});
    metadata.Add("granitehybrid.attention.head_count", int64_t{4});
    metadata.Add("granitehybrid.attention.head_count_kv", heads);
    metadata.Add("granitehybrid.attention.layer_norm_rms_epsilon", 1e-6);
    metadata.Add("granitehybrid.rope.scaling.finetuned", false);
    if (has_sizes) {
      metadata.Add("granitehybrid.ssm.conv_kernel", int64_t{4});
      metadata.Add("granitehybrid.ssm.state_size", int64_t{16});
      metadata.Add("granitehybrid.ssm.group_count", int64_t{2});
      metadata.Add("granitehybrid.ssm.time_step_rank", int64_t{8});
      metadata.Add("granitehybrid.ssm.inner_size", inner_size);
    }
    const auto architecture = ReadGgufArchitecture(metadata);
    const auto config = ReadGgufConfig(metadata, *architecture, 300);
    if (!config) return config.error().message();
    std::string layers;
    for (size_t i = 0; i < config->num_hidden_layers; ++i) {
      layers += config->layer_kind(i).mamba ? 'm' : 'a';
    }
    return Format("{} {} {} {}", layers, config->num_key_value_heads, config->mamba_d_head,
                  config->mamba_n_groups);
  };
  EXPECT_EQ(read({0, 2, 0}, 128, true), "mam 2 16 2");
  EXPECT_EQ(read({2, 2, 2}, 128, false), "aaa 2 0 0");
  EXPECT_THAT(read({0, 2, 0}, 128, false), ::testing::HasSubstr("ssm.conv_kernel is missing"));
  EXPECT_THAT(read({0, 2, 0}, 127, true), ::testing::HasSubstr("which 8 heads do not divide"));
  EXPECT_THAT(read({0, 0, 0}, 128, true), ::testing::HasSubstr("is 0 for every layer"));
  EXPECT_THAT(read({0, 2, 1}, 128, true), ::testing::HasSubstr("has 1 for layer 2"));
}

TEST_F(GgufFamiliesDamageTest, TheMixtureOfLfm2NeedsSigmoids) {
  GgufMetadata metadata("test");
  metadata.Add("general.architecture", std::string("lfm2moe"));
  for (const char* key : {"embedding_length", "feed_forward_length", "context_length"}) {
    metadata.Add(std::string("lfm2moe.") + key, int64_t{64});
  }
  metadata.Add("lfm2moe.block_count", int64_t{1});
  metadata.Add("lfm2moe.attention.head_count", int64_t{4});
  metadata.Add("lfm2moe.attention.layer_norm_rms_epsilon", 1e-5);
  metadata.Add("lfm2moe.expert_count", int64_t{4});
  metadata.Add("lfm2moe.expert_used_count", int64_t{2});
  const auto architecture = ReadGgufArchitecture(metadata);
  ASSERT_TRUE(architecture);
  const auto missing = ReadGgufConfig(metadata, *architecture, 300);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), ::testing::HasSubstr("expert_gating_func is missing"));
  metadata.Add("lfm2moe.expert_gating_func", int64_t{1});
  const auto softmax = ReadGgufConfig(metadata, *architecture, 300);
  ASSERT_FALSE(softmax);
  EXPECT_THAT(softmax.error().message(), ::testing::HasSubstr("expert_gating_func"));
}

TEST_F(GgufFamiliesDamageTest, RefusesKeysOfOtherFamilies) {
  for (const char* key : {"embedding_scale", "residual_scale", "logit_scale", "attention.scale",
                          "attn_logit_softcapping", "final_logit_softcapping"}) {
    const std::string name = std::string("olmo2.") + key;
    ExpectRefused(
        "Olmo2", [&](support::GgufWriter& writer) { writer.Add(name, 3.0f); },
        name + " changes the computation");
  }
  ExpectRefused(
      "Gemma3",
      [](support::GgufWriter& writer) { writer.Add("gemma3.attn_logit_softcapping", 50.0f); },
      "gemma3.attn_logit_softcapping changes the computation");
}

TEST_F(GgufFamiliesDamageTest, RefusesMixturesThatComputeOtherwise) {
  for (const char* name : {"Mixtral", "Qwen2Moe", "Qwen3Moe", "Olmoe", "GraniteMoe"}) {
    const std::string prefix = support::FamilyNamed(name).gguf_architecture + ".";
    const auto with = [&](const std::string& key, auto value) {
      return [=](support::GgufWriter& writer) { writer.Add(prefix + key, value); };
    };
    EXPECT_TRUE(Open(name, with("expert_gating_func", 1u))) << name;
    EXPECT_TRUE(Open(name, with("expert_weights_scale", 1.0f))) << name;
    ExpectRefused(name, with("expert_gating_func", 2u), "expert_gating_func changes");
    ExpectRefused(name, with("expert_weights_scale", 2.5f), "expert_weights_scale changes");
    ExpectRefused(name, with("leading_dense_block_count", 1u), "leading_dense_block_count changes");
  }
  for (const char* name : {"Mixtral", "Qwen3Moe", "Olmoe"}) {
    ExpectRefused(
        name,
        [&](support::GgufWriter& writer) {
          writer.Add(
              support::FamilyNamed(name).gguf_architecture + ".expert_shared_feed_forward_length",
              32u);
        },
        "gives a shared expert");
  }
  // A dense family.
  ExpectRefused(
      "Olmo2", [](support::GgufWriter& writer) { writer.Add("olmo2.expert_count", 8u); },
      "olmo2.expert_count is 8");
}

// llama.cpp knows the largest Gemmas by their numbers of layers.
TEST(GgufFoldingTest, TheLargestGemmasDivideScoresOtherwise) {
  for (const auto& [name, layers] : {std::pair("gemma2", 46u), std::pair("gemma3", 62u)}) {
    GgufMetadata metadata("x.gguf");
    metadata.Add("general.architecture", std::string(name));
    const GgufArchitecture architecture = ReadGgufArchitecture(metadata).value();
    ModelConfig config = {.hidden_size = 4608,
                          .num_hidden_layers = layers,
                          .num_attention_heads = 32,
                          .head_dim = 128};
    EXPECT_DOUBLE_EQ(ReadGgufFolding(metadata, architecture, config).value().score_factor,
                     std::sqrt(128.0 / 144.0));
    config.num_hidden_layers = 26;
    EXPECT_EQ(ReadGgufFolding(metadata, architecture, config).value().score_factor, 1.0);
  }
}

// Returns the families that GGUF files can describe, too.
std::vector<FamilyCheckpoint> GgufFamilies() {
  // Where heads of values are in another order, families_reference_test compares logits.
  std::vector<FamilyCheckpoint> families = support::FamilyCheckpoints();
  std::erase_if(families, [](const FamilyCheckpoint& c) {
    return c.gguf_architecture.empty() || c.gguf_architecture.starts_with("qwen35");
  });
  return families;
}

INSTANTIATE_TEST_SUITE_P(Families, GgufFamiliesTest, ::testing::ValuesIn(GgufFamilies()),
                         [](const auto& family) { return family.param.name; });

}  // namespace
}  // namespace cria
