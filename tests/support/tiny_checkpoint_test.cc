#include "support/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "reference/hugging_face_directory.h"
#include "reference/reference_decoder.h"
#include "reference/reference_rope.h"
#include "support/files.h"
#include "support/random_values.h"
#include "support/temporary_directory.h"

namespace cria::support {
namespace {

using reference::ReadHuggingFaceDirectory;
using reference::ReferenceConfig;
using reference::ReferenceModel;

void ExpectSameModel(const ReferenceModel& actual, const ReferenceModel& expected) {
  const ReferenceConfig& a = actual.config;
  const ReferenceConfig& e = expected.config;
  EXPECT_EQ(a.architecture, e.architecture);
  EXPECT_EQ(a.hidden_size, e.hidden_size);
  EXPECT_EQ(a.intermediate_size, e.intermediate_size);
  EXPECT_EQ(a.num_hidden_layers, e.num_hidden_layers);
  EXPECT_EQ(a.num_attention_heads, e.num_attention_heads);
  EXPECT_EQ(a.num_key_value_heads, e.num_key_value_heads);
  EXPECT_EQ(a.head_dim, e.head_dim);
  EXPECT_EQ(a.vocab_size, e.vocab_size);
  EXPECT_EQ(a.max_position_embeddings, e.max_position_embeddings);
  EXPECT_EQ(a.rms_norm_eps, e.rms_norm_eps);
  EXPECT_EQ(a.rope_theta, e.rope_theta);
  EXPECT_EQ(a.rope_scaling.type, e.rope_scaling.type);
  EXPECT_EQ(a.rope_scaling.attention_factor, e.rope_scaling.attention_factor);
  EXPECT_EQ(reference::RopeFrequencies(a, 64), reference::RopeFrequencies(e, 64));
  EXPECT_EQ(a.tie_word_embeddings, e.tie_word_embeddings);
  EXPECT_EQ(a.sliding_window, e.sliding_window);
  EXPECT_EQ(a.qkv_bias, e.qkv_bias);
  EXPECT_EQ(a.o_bias, e.o_bias);
  EXPECT_EQ(a.mlp_bias, e.mlp_bias);
  EXPECT_EQ(a.qk_norm, e.qk_norm);
  ASSERT_EQ(a.layers.size(), e.layers.size());
  for (size_t layer = 0; layer < e.layers.size(); ++layer) {
    EXPECT_EQ(a.layers[layer].sliding_window, e.layers[layer].sliding_window);
    EXPECT_EQ(a.layers[layer].rope_scaling.type, e.layers[layer].rope_scaling.type);
    EXPECT_EQ(a.layers[layer].rope_scaling.attention_factor,
              e.layers[layer].rope_scaling.attention_factor);
    EXPECT_EQ(reference::RopeFrequencies(a, 64, layer), reference::RopeFrequencies(e, 64, layer));
  }
  EXPECT_EQ(a.bos_token_id, e.bos_token_id);
  EXPECT_EQ(a.eos_token_ids, e.eos_token_ids);
  ASSERT_EQ(actual.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    ASSERT_TRUE(actual.tensors.contains(name)) << name;
    EXPECT_EQ(actual.tensors.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(actual.tensors.at(name).values, tensor.values) << name;
  }
}

class Specs : public testing::TestWithParam<NamedSpec> {};

TEST_P(Specs, AreReadAsTheyWereWritten) {
  const CheckpointSpec spec = GetParam().make();
  const ReferenceModel model = MakeModel(spec);
  const TemporaryDirectory directory;
  WriteHuggingFaceDirectory(model, directory / "model", spec.format);
  ExpectSameModel(ReadHuggingFaceDirectory(directory / "model"), model);
  WriteRandomCheckpoint(spec, directory / "streamed");
  ExpectSameModel(ReadHuggingFaceDirectory(directory / "streamed"), model);
}

TEST_P(Specs, KeepLogitsOfOrderOne) {
  const ReferenceModel model = MakeModel(GetParam().make());
  const std::vector<int> ids = {1, 50, 200, 3, 3, 262, 17};
  const std::vector<double> logits = reference::Logits(model, ids);
  double sum_of_squares = 0.0;
  for (const double logit : logits) sum_of_squares += logit * logit;
  const double root = std::sqrt(sum_of_squares / static_cast<double>(logits.size()));
  EXPECT_GT(root, 0.5);
  EXPECT_LT(root, 2.0);
}

INSTANTIATE_TEST_SUITE_P(All, Specs, testing::ValuesIn(TinySpecs()),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(TinyCheckpoint, EveryStorageTypeAndShardsAreReadBack) {
  for (const StorageType storage : {StorageType::kF32, StorageType::kBf16, StorageType::kF16}) {
    CheckpointSpec spec = SpecGqa();
    spec.format.storage = storage;
    spec.format.shards = 3;
    const ReferenceModel model = MakeModel(spec);
    const TemporaryDirectory directory;
    WriteHuggingFaceDirectory(model, directory.path(), spec.format);
    EXPECT_FALSE(std::filesystem::exists(directory / "model.safetensors"));
    EXPECT_TRUE(std::filesystem::exists(directory / "model-00003-of-00003.safetensors"));
    ExpectSameModel(ReadHuggingFaceDirectory(directory.path()), model);
  }
}

TEST(TinyCheckpoint, SeedsAreDeterministicAndDiffer) {
  CheckpointSpec spec = SpecGqa();
  const ReferenceModel model = MakeModel(spec);
  ExpectSameModel(MakeModel(spec), model);
  spec.seed = 2;
  const ReferenceModel other = MakeModel(spec);
  for (const auto& [name, tensor] : model.tensors) {
    EXPECT_NE(other.tensors.at(name).values, tensor.values) << name;
  }
  EXPECT_NE(model.tensors.at("model.layers.0.mlp.gate_proj.weight").values,
            model.tensors.at("model.layers.0.mlp.up_proj.weight").values);
}

// Every machine and compiler must make the same numbers. These were computed independently, in
// exact integers, by the definition of SplitMix64.
TEST(RandomValues, AreTheSameEverywhere) {
  float values[3];
  FillNormal(1, 0, values);
  EXPECT_FLOAT_EQ(values[0], -0.617513536f);
  EXPECT_FLOAT_EQ(values[1], 1.07246231f);
  EXPECT_FLOAT_EQ(values[2], 1.59723649f);
}

TEST(RandomValues, AreNormalEnoughAndDependOnTheIndexAlone) {
  std::vector<float> values(100'000);
  FillNormal(7, 0, values);
  double sum = 0.0, squares = 0.0, within_one = 0.0;
  for (const float value : values) {
    sum += value;
    squares += value * value;
    within_one += std::abs(value) < 1.0f;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0.0, 0.02);
  EXPECT_NEAR(squares / count, 1.0, 0.02);
  EXPECT_NEAR(within_one / count, 0.683, 0.02);
  std::vector<float> stretch(10);
  FillNormal(7, 5000, stretch);
  EXPECT_TRUE(std::equal(stretch.begin(), stretch.end(), values.begin() + 5000));
}

TEST(RoundTo, GoesToTheNearestAndTiesToEven) {
  // bf16 has 8 significant bits: the steps above 256 are 2. f16 has 11: above 2048 they are 2.
  std::vector<float> values = {257.0f, 258.5f, 259.0f, -257.0f, 1.0f};
  RoundTo(StorageType::kBf16, values);
  EXPECT_EQ(values, (std::vector<float>{256.0f, 258.0f, 260.0f, -256.0f, 1.0f}));
  values = {2049.0f, 2050.5f, 2051.0f, std::ldexp(3.0f, -25)};  // The last is subnormal.
  RoundTo(StorageType::kF16, values);
  EXPECT_EQ(values, (std::vector<float>{2048.0f, 2050.0f, 2052.0f, std::ldexp(1.0f, -23)}));
}

TEST(SafetensorsWriter, RefusesMoreOrFewerValuesThanTheShapes) {
  const TemporaryDirectory directory;
  SafetensorsWriter writer(directory / "file", StorageType::kF32, {{"a", {2, 2}}});
  writer.Write(std::vector<float>{1, 2, 3});
  EXPECT_THROW(writer.Finish(), std::runtime_error);
  EXPECT_THROW(writer.Write(std::vector<float>{4, 5}), std::runtime_error);
  writer.Write(std::vector<float>{4});
  EXPECT_NO_THROW(writer.Finish());
  // The data begins at a multiple of 8 bytes.
  EXPECT_EQ((ReadFile(directory / "file").size() - 16) % 8, 0u);
}

TEST(GroupedQueries, EqualMultiHeadWithRepeatedKeysAndValues) {
  const ReferenceModel grouped = MakeModel(SpecGqa());
  ReferenceModel repeated = grouped;
  const ReferenceConfig& config = grouped.config;
  repeated.config.num_key_value_heads = config.num_attention_heads;
  const size_t head_elements = config.head_dim * config.hidden_size;
  const size_t group_size = config.num_attention_heads / config.num_key_value_heads;
  for (auto& [name, tensor] : repeated.tensors) {
    if (!name.contains("k_proj") && !name.contains("v_proj")) continue;
    const std::vector<float> heads = tensor.values;
    tensor.values.clear();
    for (size_t head = 0; head < config.num_attention_heads; ++head) {
      const auto begin =
          heads.begin() + static_cast<std::ptrdiff_t>(head / group_size * head_elements);
      tensor.values.insert(tensor.values.end(), begin,
                           begin + static_cast<std::ptrdiff_t>(head_elements));
    }
    tensor.shape[0] = config.num_attention_heads * config.head_dim;
  }
  const std::vector<int> ids = {5, 99, 5, 250};
  EXPECT_EQ(reference::Logits(grouped, ids), reference::Logits(repeated, ids));
}

}  // namespace
}  // namespace cria::support
