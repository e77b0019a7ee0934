#include "converter/hugging_face/hf_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/open_checkpoint.h"
#include "converter/test_checkpoint.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/torch_writer.h"

namespace cria {
namespace {

using nlohmann::json;
using support::TestTensors;
using ::testing::HasSubstr;

class HfCheckpointTest : public ::testing::Test {
 protected:
  HfCheckpointTest() {
    support::WriteFile(folder_.path() / "config.json", support::TinyConfig().dump());
  }

  void WriteShards() {
    TestTensors shards[2];
    json weight_map;
    for (const auto& [name, tensor] : support::TinyTensors(true)) {
      const int shard = name.contains("layers.1") ? 1 : 0;
      shards[shard][name] = tensor;
      weight_map[name] = shard == 0 ? "one.safetensors" : "two.safetensors";
    }
    support::WriteSafetensors(folder_.path() / "one.safetensors", shards[0]);
    support::WriteSafetensors(folder_.path() / "two.safetensors", shards[1]);
    WriteIndex(weight_map);
  }
  void WriteIndex(const json& weight_map) {
    weight_map_ = weight_map;
    support::WriteFile(folder_.path() / "model.safetensors.index.json",
                       json({{"weight_map", weight_map}}).dump());
  }
  // Writes a part of the tensors as torch.save does.
  void WriteTorchFile(const std::string& name, const TestTensors& tensors) {
    std::vector<support::TorchTensor> stored;
    for (const auto& [tensor_name, tensor] : tensors) {
      stored.push_back({tensor_name, {tensor.shape.begin(), tensor.shape.end()}, tensor.values});
    }
    support::WriteTorchArchive(stored, support::StorageType::kF32, folder_.path() / name);
  }
  void ExpectTensors(const TestTensors& expected) {
    const auto checkpoint = OpenCheckpoint(folder_.path());
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    ASSERT_EQ(checkpoint->tensors.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      const TensorSource& source = checkpoint->tensors.at(name);
      EXPECT_EQ(source.shape, tensor.shape) << name;
      std::vector<float> values(tensor.values.size());
      ASSERT_TRUE(TensorReader().Read(source, 0, values));
      EXPECT_EQ(values, tensor.values) << name;
    }
  }
  void ExpectRefused(std::string_view reason) {
    const auto opened = OpenCheckpoint(folder_.path());
    ASSERT_FALSE(opened) << reason;
    EXPECT_THAT(opened.error().message(), HasSubstr(reason));
  }

  support::TemporaryDirectory folder_;
  json weight_map_;
};

TEST_F(HfCheckpointTest, OneFile) {
  support::WriteSafetensors(folder_.path() / "model.safetensors", support::TinyTensors(true));
  const auto checkpoint = OpenCheckpoint(folder_.path() / ".");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->name, folder_.path().filename());
  EXPECT_EQ(checkpoint->tensors.size(), support::TinyTensors(true).size());
}

TEST_F(HfCheckpointTest, Shards) {
  WriteShards();
  const auto checkpoint = OpenCheckpoint(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors.size(), support::TinyTensors(true).size());
  EXPECT_THAT(checkpoint->tensors.at("model.layers.1.input_layernorm.weight").file->path(),
              HasSubstr("two.safetensors"));
}

TEST_F(HfCheckpointTest, PyTorchsFile) {
  const TestTensors tensors = support::TinyTensors(true);
  WriteTorchFile("pytorch_model.bin", tensors);
  ExpectTensors(tensors);
  // As in transformers, safetensors come first.
  TestTensors others = tensors;
  others["model.norm.weight"].values[0] += 1.0f;
  support::WriteSafetensors(folder_.path() / "model.safetensors", others);
  ExpectTensors(others);
}

TEST_F(HfCheckpointTest, PyTorchsShards) {
  TestTensors shards[2];
  json weight_map;
  for (const auto& [name, tensor] : support::TinyTensors(false)) {
    const int shard = name.contains("layers.1") ? 1 : 0;
    shards[shard][name] = tensor;
    weight_map[name] = shard == 0 ? "one.bin" : "two.bin";
  }
  WriteTorchFile("one.bin", shards[0]);
  WriteTorchFile("two.bin", shards[1]);
  support::WriteFile(folder_.path() / "pytorch_model.bin.index.json",
                     json({{"weight_map", weight_map}}).dump());
  ExpectTensors(support::TinyTensors(false));
}

TEST_F(HfCheckpointTest, RefusesABrokenIndex) {
  WriteShards();
  const json sound = weight_map_;
  for (const char* name : {"../one.safetensors", "/etc/passwd", "..", "", "a/b"}) {
    json broken = sound;
    broken["model.norm.weight"] = name;
    WriteIndex(broken);
    ExpectRefused("weight_map.model.norm.weight is not the name of a file in the same folder");
  }
  json broken = sound;
  broken["model.norm.weight"] = "two.safetensors";
  WriteIndex(broken);
  ExpectRefused("two.safetensors has tensor \"model.norm.weight\", but it does not");
  broken["model.norm.weight"] = "three.safetensors";
  WriteIndex(broken);
  ExpectRefused("three.safetensors: cannot open");
  support::WriteFile(folder_.path() / "model.safetensors.index.json", "{}");
  ExpectRefused("weight_map is missing");
}

// Files of the next format, or of none, would be taken instead.
TEST_F(HfCheckpointTest, LinksToLostFilesAreNotAbsent) {
  for (const char* const name : {"model.safetensors", "model.safetensors.index.json",
                                 "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    std::filesystem::create_symlink("gone", folder_ / name);
    ExpectRefused(std::string(name) + ": is a link to \"gone\", which does not exist");
    const auto has_no_weights = IsHfConfigWithoutWeights(folder_.path());
    EXPECT_FALSE(has_no_weights);
    std::filesystem::remove(folder_ / name);
  }
  EXPECT_TRUE(IsHfConfigWithoutWeights(folder_.path()).value());
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_FALSE(IsHfConfigWithoutWeights(folder_.path()).value());
  std::filesystem::create_symlink("gone", folder_ / "config.json");
  support::WriteFile(folder_ / "params.json", "{}");  // A file of Meta's format.
  ExpectRefused("config.json: cannot open: No such file or directory");
}

TEST_F(HfCheckpointTest, SaysWhatItLooksFor) {
  ExpectRefused("has neither model.safetensors nor model.safetensors.index.json");
  EXPECT_THAT(OpenCheckpoint(folder_.path() / "absent").error().message(),
              HasSubstr("does not exist"));
  std::filesystem::create_symlink("loop", folder_.path() / "loop");
  EXPECT_THAT(OpenCheckpoint(folder_.path() / "loop").error().message(),
              HasSubstr("loop: cannot open: Too many levels of symbolic links"));
  EXPECT_THAT(OpenCheckpoint(folder_.path() / "config.json").error().message(),
              HasSubstr("give the folder"));
  std::filesystem::remove(folder_.path() / "config.json");
  ExpectRefused(
      "is a folder without a model file or checkpoint; the folder of a checkpoint has config.json");
}

}  // namespace
}  // namespace cria
