#include "converter/write/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "converter/open_checkpoint.h"
#include "converter/test_checkpoint.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::TestTensors;
using support::TinyConfig;
using support::TinyTensors;
using ::testing::HasSubstr;

class TensorMapTest : public ::testing::Test {
 protected:
  Result<std::vector<MappedTensor>> Map(const TestTensors& tensors, bool is_tied) {
    nlohmann::json config = TinyConfig();
    config["tie_word_embeddings"] = is_tied;
    support::WriteTinyCheckpoint(folder_.path(), config, tensors);
    auto opened = OpenCheckpoint(folder_.path());
    EXPECT_TRUE(opened) << opened.error().message();
    checkpoint_ = std::move(*opened);
    return MapTensors(checkpoint_);
  }
  void ExpectRefused(const TestTensors& tensors, bool is_tied, std::string_view reason) {
    const auto mapped = Map(tensors, is_tied);
    ASSERT_FALSE(mapped) << reason;
    EXPECT_THAT(mapped.error().message(), HasSubstr(reason));
  }
  static std::vector<std::string> Names(const MappedTensor& tensor) {
    std::vector<std::string> names;
    for (const MappedPart& part : tensor.parts) names.push_back(part.source->name);
    return names;
  }

  support::TemporaryDirectory folder_;
  Checkpoint checkpoint_;
};

TEST_F(TensorMapTest, FusesRowsInOrder) {
  const auto mapped = Map(TinyTensors(false), false);
  ASSERT_TRUE(mapped) << mapped.error().message();
  ASSERT_EQ(mapped->size(), 15u);
  EXPECT_EQ(Names(mapped->at(0)), (std::vector<std::string>{"model.embed_tokens.weight"}));
  EXPECT_EQ(Names(mapped->at(2)),
            (std::vector<std::string>{"model.layers.0.self_attn.q_proj.weight",
                                      "model.layers.0.self_attn.k_proj.weight",
                                      "model.layers.0.self_attn.v_proj.weight"}));
  EXPECT_EQ(Names(mapped->at(11)), (std::vector<std::string>{"model.layers.1.mlp.gate_proj.weight",
                                                             "model.layers.1.mlp.up_proj.weight"}));
  EXPECT_EQ(Names(mapped->at(14)), (std::vector<std::string>{"lm_head.weight"}));
}

TEST_F(TensorMapTest, ATiedHeadIsTheEmbedding) {
  const auto mapped = Map(TinyTensors(true), true);
  ASSERT_TRUE(mapped) << mapped.error().message();
  EXPECT_EQ(Names(mapped->back()), (std::vector<std::string>{"model.embed_tokens.weight"}));
}

TEST_F(TensorMapTest, ATiedHeadMayBeStoredButNotDiffer) {
  TestTensors tensors = TinyTensors(true);
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  const auto mapped = Map(tensors, true);
  ASSERT_TRUE(mapped) << mapped.error().message();
  tensors["lm_head.weight"].values.back() += 0.5f;
  ExpectRefused(tensors, true, "\"lm_head.weight\" differs from \"model.embed_tokens.weight\"");
}

TEST_F(TensorMapTest, NamesWhatIsMissing) {
  const std::string name = "model.layers.1.self_attn.k_proj.weight";
  TestTensors tensors = TinyTensors(true);
  tensors.erase(name);
  ExpectRefused(tensors, true, name);
  ExpectRefused(TinyTensors(true), false, "\"lm_head.weight\" is missing");
}

TEST_F(TensorMapTest, NamesShapesThatDoNotFit) {
  TestTensors tensors = TinyTensors(true);
  tensors["model.layers.0.mlp.down_proj.weight"].shape = {20, 8};
  ExpectRefused(tensors, true,
                "\"model.layers.0.mlp.down_proj.weight\" has shape [20, 8], but config.json calls "
                "for [8, 20]");
  tensors = TinyTensors(true);
  tensors["model.norm.weight"].shape = {1, 8};
  ExpectRefused(tensors, true, "\"model.norm.weight\" has shape [1, 8]");
}

TEST_F(TensorMapTest, RefusesTensorsWithoutAPlace) {
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.bias", "model.layers.0.self_attn.q_norm.weight",
        "model.layers.2.input_layernorm.weight", "something"}) {
    TestTensors tensors = TinyTensors(true);
    tensors[name] = {{8}, std::vector<float>(8)};
    ExpectRefused(tensors, true, std::string("\"") + name + "\" is not part of");
  }
}

TEST_F(TensorMapTest, IgnoresFrequenciesThatFollowFromTheConfiguration) {
  TestTensors tensors = TinyTensors(true);
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{2}, {1.0f, 0.01f}};
  EXPECT_TRUE(Map(tensors, true));
}

}  // namespace
}  // namespace cria
