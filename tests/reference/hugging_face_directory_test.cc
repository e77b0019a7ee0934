#include "reference/hugging_face_directory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "golden/test_data.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria::reference {
namespace {

using nlohmann::json;
using support::TemporaryDirectory;

class HuggingFaceDirectory : public testing::Test {
 protected:
  void SetUp() override {
    spec_.format.tokenizer = support::TokenizerFiles::kNone;
    support::WriteRandomCheckpoint(spec_, directory_.path());
  }

  json Config() const { return json::parse(support::ReadFile(directory_ / "config.json")); }
  void SetConfig(const json& config) const {
    support::WriteFile(directory_ / "config.json", config.dump());
  }
  // Makes the safetensors file anew with this header, which may be wrong, and `data`.
  void SetWeights(const std::string& header, const std::string& data) const {
    const uint64_t header_bytes = header.size();
    support::WriteFile(
        directory_ / "model.safetensors",
        std::string(reinterpret_cast<const char*>(&header_bytes), 8) + header + data);
  }

  support::CheckpointSpec spec_ = support::SpecMha();
  TemporaryDirectory directory_;
};

TEST_F(HuggingFaceDirectory, AbsentFieldsHaveTheDefaultsOfHuggingFace) {
  json config = Config();
  for (const char* name :
       {"num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta", "rope_scaling",
        "tie_word_embeddings", "max_position_embeddings", "bos_token_id", "eos_token_id"}) {
    config.erase(name);
  }
  SetConfig(config);
  const ReferenceConfig read = ReadHuggingFaceDirectory(directory_.path()).config;
  EXPECT_EQ(read.num_key_value_heads, 4u);
  EXPECT_EQ(read.head_dim, 16u);
  EXPECT_EQ(read.rms_norm_eps, 1e-6);
  EXPECT_EQ(read.rope_theta, 10000.0);
  EXPECT_EQ(read.rope_scaling.type, ReferenceRopeScaling::Type::kNone);
  EXPECT_FALSE(read.tie_word_embeddings);
  EXPECT_EQ(read.max_position_embeddings, 2048u);
  EXPECT_EQ(read.bos_token_id, -1);
  EXPECT_TRUE(read.eos_token_ids.empty());
}

TEST_F(HuggingFaceDirectory, ReadsOneEndTokenAndTheOlderNameOfRopeType) {
  json config = Config();
  config["eos_token_id"] = 7;
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  SetConfig(config);
  const ReferenceConfig read = ReadHuggingFaceDirectory(directory_.path()).config;
  EXPECT_EQ(read.eos_token_ids, std::vector{7});
  EXPECT_EQ(read.rope_scaling.type, ReferenceRopeScaling::Type::kLinear);
  EXPECT_EQ(read.rope_scaling.factor, 2.0);
}

TEST_F(HuggingFaceDirectory, ReadsAWindowWhereTheArchitectureHasOne) {
  const auto window = [this](const char* architecture, const json& fields) {
    json config = Config();
    config["architectures"] = {architecture};
    config.update(fields);
    SetConfig(config);
    return ReadHuggingFaceDirectory(directory_.path()).config.sliding_window;
  };
  EXPECT_EQ(window("LlamaForCausalLM", {{"sliding_window", 12}}), 0u);
  EXPECT_EQ(window("MistralForCausalLM", {{"sliding_window", 12}}), 12u);
  EXPECT_EQ(window("MistralForCausalLM", {{"sliding_window", nullptr}}), 0u);
  const json on = {{"sliding_window", 12}, {"use_sliding_window", true}};
  EXPECT_EQ(window("Qwen3ForCausalLM", on), 0u);  // Not in the first 28 layers.
  json everywhere = on;
  everywhere["max_window_layers"] = 0;
  EXPECT_EQ(window("Qwen3ForCausalLM", everywhere), 12u);
  EXPECT_EQ(window("Qwen2ForCausalLM", {{"sliding_window", 12}, {"use_sliding_window", false}}),
            0u);
}

TEST_F(HuggingFaceDirectory, ReadsWindowsOfSomeLayers) {
  json config = Config();
  config["architectures"] = {"Qwen2ForCausalLM"};
  config.update({{"sliding_window", 12}, {"use_sliding_window", true}, {"max_window_layers", 1}});
  SetConfig(config);
  ReferenceConfig read = ReadHuggingFaceDirectory(directory_.path()).config;
  ASSERT_EQ(read.layers.size(), 2u);
  EXPECT_EQ(read.layers[0].sliding_window, 0u);
  EXPECT_EQ(read.layers[1].sliding_window, 12u);
  // layer_types has precedence.
  config["layer_types"] = {"sliding_attention", "full_attention"};
  SetConfig(config);
  read = ReadHuggingFaceDirectory(directory_.path()).config;
  ASSERT_EQ(read.layers.size(), 2u);
  EXPECT_EQ(read.layers[0].sliding_window, 12u);
  EXPECT_EQ(read.layers[1].sliding_window, 0u);
  EXPECT_EQ(read.layers[1].rope_theta, 10000.0);
  config["rope_parameters"] = {{"sliding_attention", {{"rope_theta", 500.0}}},
                               {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}}}};
  SetConfig(config);
  read = ReadHuggingFaceDirectory(directory_.path()).config;
  EXPECT_EQ(read.layers[0].rope_theta, 500.0);
  EXPECT_EQ(read.layers[0].rope_scaling.type, ReferenceRopeScaling::Type::kNone);
  EXPECT_EQ(read.layers[1].rope_theta, 10000.0);
  EXPECT_EQ(read.layers[1].rope_scaling.factor, 8.0);
}

TEST_F(HuggingFaceDirectory, RefusesAnUnknownArchitecture) {
  json config = Config();
  config["architectures"] = {"MambaForCausalLM"};
  SetConfig(config);
  EXPECT_THROW(ReadHuggingFaceDirectory(directory_.path()), std::runtime_error);
}

TEST_F(HuggingFaceDirectory, RefusesAnUnknownRopeType) {
  json config = Config();
  config["rope_scaling"] = {{"type", "stretched"}, {"factor", 2.0}};
  SetConfig(config);
  EXPECT_THROW(ReadHuggingFaceDirectory(directory_.path()), std::runtime_error);
}

TEST_F(HuggingFaceDirectory, DecodesEveryTypeByItsBits) {
  const std::string header = R"({"f":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},)"
                             R"("h":{"dtype":"F16","shape":[2,2],"data_offsets":[8,16]}})";
  // 1.5 is 3fc00000 in F32, 3fc0 in BF16 and 3e00 in F16; 8001 in F16 is -2^-24, 7bff is 65504 and
  // 0400 is 2^-14.
  SetWeights(header, std::string("\0\0\xc0\x3f\xc0\x3f\xc0\xbf\0\x3e\x01\x80\xff\x7b\0\x04", 16));
  const ReferenceModel model = ReadHuggingFaceDirectory(directory_.path());
  EXPECT_EQ(model.tensors.at("f").values, std::vector{1.5f});
  EXPECT_EQ(model.tensors.at("b").values, (std::vector{1.5f, -1.5f}));
  EXPECT_EQ(model.tensors.at("h").values, (std::vector{1.5f, -0x1p-24f, 65504.0f, 0x1p-14f}));
  EXPECT_EQ(model.tensors.at("h").shape, (std::vector<size_t>{2, 2}));
}

TEST_F(HuggingFaceDirectory, RefusesWeightsThatDoNotFit) {
  const auto read = [this] { return ReadHuggingFaceDirectory(directory_.path()); };
  SetWeights(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "123");
  EXPECT_THROW(read(), std::runtime_error);
  SetWeights(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234");
  EXPECT_THROW(read(), std::runtime_error);
  SetWeights(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", "1234");
  EXPECT_THROW(read(), std::runtime_error);
  support::WriteFile(directory_ / "model.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}");
  EXPECT_THROW(read(), std::runtime_error);
  support::WriteFile(directory_ / "model.safetensors", "123");
  EXPECT_THROW(read(), std::runtime_error);
  std::filesystem::remove(directory_ / "model.safetensors");
  EXPECT_THROW(read(), std::runtime_error);
}

TEST_F(HuggingFaceDirectory, ReadsShards) {
  const ReferenceModel whole = ReadHuggingFaceDirectory(directory_.path());
  support::CheckpointSpec spec = spec_;
  spec.format.shards = 3;
  spec.format.storage = support::StorageType::kBf16;
  const TemporaryDirectory other;
  support::WriteRandomCheckpoint(spec, other.path());
  ASSERT_TRUE(std::filesystem::exists(other / "model.safetensors.index.json"));
  const ReferenceModel sharded = ReadHuggingFaceDirectory(other.path());
  ASSERT_EQ(whole.tensors.size(), sharded.tensors.size());
  for (const auto& [name, tensor] : whole.tensors) {
    std::vector<float> rounded = tensor.values;
    support::RoundTo(support::StorageType::kBf16, rounded);
    EXPECT_EQ(sharded.tensors.at(name).values, rounded) << name;
  }
}

TEST_F(HuggingFaceDirectory, ReadsTheShardsOfATrainedModel) {
  CRIA_NEEDS_TEST_DATA("stories260K-bf16-sharded");
  const std::filesystem::path folder = ExternalTestData();
  const ReferenceModel whole = ReadHuggingFaceDirectory(folder / "stories260K");
  const ReferenceModel sharded = ReadHuggingFaceDirectory(folder / "stories260K-bf16-sharded");
  ASSERT_EQ(whole.tensors.size(), sharded.tensors.size());
  for (const auto& [name, tensor] : whole.tensors) {
    std::vector<float> rounded = tensor.values;
    support::RoundTo(support::StorageType::kBf16, rounded);
    EXPECT_EQ(sharded.tensors.at(name).values, rounded) << name;
  }
}

}  // namespace
}  // namespace cria::reference
