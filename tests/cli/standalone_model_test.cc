// Model files whose packed weights replace the portable ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/packing_fixture.h"
#include "support/files.h"
#include "support/run_program.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;
using testing::Not;

class StandaloneModel : public PackingTest<TinyModel> {
 protected:
  void SetUp() override {
    const RunResult packed = Cria({"pack", "-m", ModelPath(), "--standalone", "-o", model_});
    ASSERT_EQ(packed.exit_code, 0) << packed.error;
    EXPECT_THAT(packed.output, HasSubstr("for the embedding table"));
  }

  std::string model_ = Path("standalone.cria");
};

TEST_F(StandaloneModel, ServesEveryCommandAsTheModelDoes) {
  const RunResult run = RunProgram(RunArguments({"--pack-cache", Folder()}, model_));
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(run.output, expected_);
  EXPECT_THAT(run.error, Not(HasSubstr("packing")));
  EXPECT_EQ(RunProgram(RunArguments({"--no-pack-cache"}, model_)).output, expected_);

  support::WriteFile(Path("text"), std::string(200, 'e') + " some words");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"perplexity", "-f", Path("text"), "-c", "64", "--pack-cache",
                                 Folder()},
        {"tokenize", "-p", "some words"}}) {
    std::vector<std::string> portable = command;
    portable.insert(portable.end(), {"-m", ModelPath()});
    std::vector<std::string> standalone = command;
    standalone.insert(standalone.end(), {"-m", model_});
    const RunResult expected = Cria(portable);
    const RunResult result = Cria(standalone);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.output, expected.output);
    EXPECT_FALSE(result.output.empty()) << expected.error;
  }
}

TEST_F(StandaloneModel, InfoTellsTheSameDigest) {
  const auto told = [](const std::string& path) {
    const RunResult info = Cria({"info", path, "--json"});
    EXPECT_EQ(info.exit_code, 0) << info.error;
    return nlohmann::json::parse(info.output);
  };
  EXPECT_EQ(told(model_)["digest"], told(ModelPath())["digest"]);
  EXPECT_EQ(told(model_)["file_bytes"], fs::file_size(model_));
  const RunResult check = Cria({"info", model_, "--check"});
  EXPECT_EQ(check.exit_code, 0) << check.error;
  EXPECT_THAT(check.error, HasSubstr("every checksum matches"));
}

TEST_F(StandaloneModel, CheckFindsDamageInBothOfItsParts) {
  const std::string sound = support::ReadFile(model_);
  const auto info = nlohmann::json::parse(Cria({"info", model_, "--json"}).output);
  // The embedding table is in the first part, and packed weights are at the end.
  const size_t embedding = info["tensors"][0]["offset"];
  for (const size_t at : {embedding, sound.size() - 1024}) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    support::WriteFile(Path("damaged.cria"), bytes);
    ExpectError(Cria({"info", Path("damaged.cria"), "--check"}), 1, "checksum does not match");
  }
}

TEST_F(StandaloneModel, IsNotPackedAgain) {
  ExpectError(Cria({"pack", "-m", model_, "-o", Path("again")}), 2, "already has packed weights");
  ExpectError(Cria({"pack", "-m", model_, "--standalone", "-o", Path("again")}), 2,
              "already has packed weights");
  ExpectError(Cria({"pack", "-m", model_, "--pack-cache", Folder()}), 2,
              "already has packed weights");
  EXPECT_FALSE(fs::exists(Path("again")));
}

}  // namespace
}  // namespace cria
