#include <gtest/gtest.h>

#include "reference/hugging_face_directory.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria::support {
namespace {

TEST(MakeCheckpoint, WritesTheShapeThatTheFlagsSay) {
  const TemporaryDirectory directory;
  const std::string output = (directory / "made").string();
  const RunResult result = RunProgram({CRIA_MAKE_CHECKPOINT,
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
  const RunResult result = RunProgram(
      {CRIA_MAKE_CHECKPOINT, "-o", (directory / "made").string(), "--vocab-size", "100"});
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

}  // namespace
}  // namespace cria::support
