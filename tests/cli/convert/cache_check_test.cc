// cria-convert measures what an int8 cache costs a model, and cria does what the file says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/hugging_face_directory.h"
#include "support/checkpoint_writer.h"
#include "support/emulation.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;
using testing::Not;

void MultiplyRows(reference::ReferenceTensor& tensor, size_t first, size_t step, float factor) {
  const size_t columns = tensor.shape[1];
  for (size_t row = first; row < tensor.shape[0]; row += step) {
    for (size_t j = 0; j < columns; ++j) tensor.values[row * columns + j] *= factor;
  }
}

// The demo model, which computes the same with keys that are `factor` times as large in one pair of
// channels of each head, and queries that are as much smaller.
class CacheCheck : public testing::Test {
 protected:
  void SetUp() override {
    if (support::IsEmulated()) GTEST_SKIP() << "what decides is the same on every processor";
  }

  RunResult Convert(float factor, const std::vector<std::string>& more = {}) const {
    reference::ReferenceModel model = reference::ReadHuggingFaceDirectory(support::kDemoCheckpoint);
    const size_t head_dim = model.config.head_dim;
    for (size_t layer = 0; layer < model.config.num_hidden_layers; ++layer) {
      const std::string attention = "model.layers." + std::to_string(layer) + ".self_attn.";
      for (const size_t channel : {size_t{0}, head_dim / 2}) {
        MultiplyRows(model.tensors.at(attention + "k_proj.weight"), channel, head_dim, factor);
        MultiplyRows(model.tensors.at(attention + "q_proj.weight"), channel, head_dim,
                     1.0f / factor);
      }
    }
    const std::filesystem::path checkpoint = folder_ / "checkpoint";
    std::filesystem::create_directory(checkpoint);
    support::WriteHuggingFaceDirectory(model, checkpoint,
                                       {.tokenizer = support::TokenizerFiles::kNone});
    for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
      std::filesystem::copy(std::filesystem::path(support::kDemoCheckpoint) / name, checkpoint,
                            std::filesystem::copy_options::overwrite_existing);
    }
    std::vector<std::string> command = {
        support::kConvertProgram, checkpoint, "-o", Model(), "--weights", "int8", "--fast"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command);
  }

  std::string Model() const { return folder_ / "model.cria"; }

  nlohmann::json Cria(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {support::kCriaProgram};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {Model(), "--json"});
    const RunResult result = RunProgram(command);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return nlohmann::json::parse(result.output);
  }

  support::TemporaryDirectory folder_;
};

TEST_F(CacheCheck, AModelWhoseKeysBearInt8HasAnInt8Cache) {
  const RunResult converted = Convert(1.0f);
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  EXPECT_THAT(converted.output, Not(HasSubstr("KV cache")));
  EXPECT_EQ(Cria({"info"})["default_kv_type"], "int8");
  EXPECT_EQ(Cria({"plan"})["options"]["kv_type"], "int8");
}

TEST_F(CacheCheck, AModelWhoseKeysDoNotBearInt8HasAnF16CacheUnlessTheUserSaysOtherwise) {
  const RunResult converted = Convert(1e4f);
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  EXPECT_THAT(converted.output, HasSubstr("the KV cache of this model is in f16"));
  EXPECT_EQ(Cria({"info"})["default_kv_type"], "f16");
  EXPECT_EQ(Cria({"plan"})["options"]["kv_type"], "f16");
  EXPECT_EQ(Cria({"plan", "--kv", "int8"})["options"]["kv_type"], "int8");
  const RunResult checked = RunProgram({support::kCriaProgram, "info", "--check", Model()});
  EXPECT_EQ(checked.exit_code, 0) << checked.error;
}

TEST_F(CacheCheck, NothingIsMeasuredWithoutVerifying) {
  const RunResult converted = Convert(1e4f, {"--no-verify"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  EXPECT_THAT(converted.output, Not(HasSubstr("KV cache")));
  EXPECT_EQ(Cria({"info"})["default_kv_type"], "int8");
}

}  // namespace
}  // namespace cria
