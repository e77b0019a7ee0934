#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "reference/hugging_face_directory.h"
#include "support/family_checkpoint.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria::support {
namespace {

TEST(MakeCheckpoint, WritesTheShapeThatTheFlagsSay) {
  const TemporaryDirectory directory;
  const std::string output = (directory / "made").string();
  const RunResult result = RunProgram({support::kMakeCheckpointProgram,
                                       "-o",
                                       output,
                                       "--shape",
                                       "stories1m",
                                       "--hidden-size",
                                       "32",
                                       "--num-hidden-layers",
                                       "1",
                                       "--vocab-size",
                                       "400",
                                       "--tie-word-embeddings",
                                       "false",
                                       "--dtype",
                                       "f16",
                                       "--seed",
                                       "9",
                                       "--chat-template",
                                       "llama3",
                                       "--shards",
                                       "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  CheckpointSpec spec = SpecNamed("stories1m");
  spec.config.hidden_size = 32;
  spec.config.num_hidden_layers = 1;
  spec.config.vocab_size = 400;
  spec.config.tie_word_embeddings = false;
  spec.format.storage = StorageType::kF16;
  spec.seed = 9;
  SetTokenIds(spec);
  const reference::ReferenceModel expected = MakeModel(spec);
  const reference::ReferenceModel model = reference::ReadHuggingFaceDirectory(output);
  ASSERT_EQ(model.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    EXPECT_EQ(model.tensors.at(name).values, tensor.values) << name;
  }
  EXPECT_EQ(model.config.bos_token_id, 393);
}

TEST(MakeCheckpoint, RefusesAVocabularyTooSmallForBytes) {
  const TemporaryDirectory directory;
  const RunResult result = RunProgram({support::kMakeCheckpointProgram, "-o",
                                       (directory / "made").string(), "--vocab-size", "100"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.error.find("too small"), std::string::npos);
}

TEST(MakeCheckpoint, NamedShapesHaveTheirSizes) {
  const auto parameters = [](const char* name) {
    size_t count = 0;
    for (const TensorShape& tensor : CheckpointTensors(SpecNamed(name).config)) {
      count += tensor.elements();
    }
    return count;
  };
  EXPECT_EQ(parameters("llama-3.2-1b"), 1'235'814'400u);  // As published.
  EXPECT_EQ(parameters("qwen2.5-0.5b"), 494'032'768u);    // As published, like the next one.
  EXPECT_EQ(parameters("qwen3-0.6b"), 596'049'920u);
  EXPECT_EQ(parameters("stories15m"), 15'191'712u);
  EXPECT_NEAR(static_cast<double>(parameters("stories1m")), 1e6, 1e5);
}

TEST(MakeCheckpoint, WritesTheModelOfAConfiguration) {
  const TemporaryDirectory directory;
  const FamilyCheckpoint family = FamilyNamed("Qwen3Moe");
  WriteFile(directory / "config.json", family.config_json);
  const auto made = [&](const std::string& skew, const std::string& embedding_scale = "1") {
    const std::string output = directory / (skew + " " + embedding_scale);
    const RunResult result = RunProgram({support::kMakeCheckpointProgram, "-o", output, "--config",
                                         directory / "config.json", "--router-skew", skew,
                                         "--embedding-scale", embedding_scale, "--dtype", "f32"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return reference::ReadHuggingFaceDirectory(output).tensors;
  };
  const auto even = made("0");
  const auto uneven = made("1.5");
  const std::string embedding = "model.embed_tokens.weight";
  EXPECT_EQ(made("0", "4").at(embedding).values[5], 4 * even.at(embedding).values[5]);
  const std::string router = "model.layers.1.mlp.gate.weight";
  ASSERT_EQ(even.size(), FamilyTensors(family).size());
  for (const auto& [name, tensor] : even) {
    const reference::ReferenceTensor& other = uneven.at(name);
    ASSERT_EQ(tensor.shape, other.shape);
    if (!name.ends_with(".mlp.gate.weight")) {
      EXPECT_EQ(tensor.values, other.values) << name;
    }
  }
  const size_t last = 7 * 64;  // The eighth expert's row.
  EXPECT_EQ(even.at(router).values[0], uneven.at(router).values[0]);
  EXPECT_FLOAT_EQ(even.at(router).values[last],
                  uneven.at(router).values[last] * std::pow(8.0f, 1.5f));
  WriteFile(directory / "other.json", R"({"architectures": ["GPT2LMHeadModel"]})");
  const RunResult other =
      RunProgram({support::kMakeCheckpointProgram, "-o", (directory / "other").string(), "--config",
                  (directory / "other.json").string()});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_NE(other.error.find("GPT2LMHeadModel"), std::string::npos) << other.error;
}

TEST(MakeCheckpoint, WritesAGgufFileOfAConfiguration) {
  const TemporaryDirectory directory;
  const auto make = [&](const char* family, const std::string& file,
                        std::vector<std::string> more) {
    const std::string config = (directory / "config.json").string();
    WriteFile(config, FamilyNamed(family).config_json);
    std::vector<std::string> command = {support::kMakeCheckpointProgram, "-o",
                                        (directory / file).string(), "--config", config};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command);
  };
  const RunResult result = make("Lfm2", "made.gguf", {"--dtype", "f32"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  WriteFamilyGguf(FamilyNamed("Lfm2"), directory / "expected.gguf", true);
  EXPECT_EQ(ReadFile(directory / "made.gguf") == ReadFile(directory / "expected.gguf"), true);
  WriteFamilyGguf(FamilyNamed("Lfm2"), directory / "f32.gguf");
  EXPECT_LT(std::filesystem::file_size(directory / "made.gguf"),
            std::filesystem::file_size(directory / "f32.gguf") / 3);
  const RunResult unknown = make("Lfm3", "other.gguf", {});
  EXPECT_NE(unknown.exit_code, 0);
  EXPECT_NE(unknown.error.find("no GGUF file can say"), std::string::npos) << unknown.error;
  const RunResult logits = make("Lfm2", "logits.gguf", {"--logits", "3"});
  EXPECT_NE(logits.exit_code, 0);
  EXPECT_NE(logits.error.find("--logits needs a directory"), std::string::npos) << logits.error;
}

}  // namespace
}  // namespace cria::support
