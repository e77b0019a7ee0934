// cria-convert --verify and --verify-text, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ConvertAndVerify : public testing::Test {
 protected:
  ConvertAndVerify() { support::WriteRandomCheckpoint(support::SpecGqa(), folder_ / "checkpoint"); }
  RunResult Convert(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {support::kConvertProgram, folder_ / "checkpoint", "-o",
                                         folder_ / "model.cria", "--fast"});
    return RunProgram(arguments);
  }

  support::TemporaryDirectory folder_;
};

TEST_F(ConvertAndVerify, EachMatrixHasItsDivergence) {
  const RunResult result = Convert({"--verify"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              ContainsRegex("layer +qkv_proj +o_proj +gate_up_proj +down_proj +sum"));
  EXPECT_THAT(result.output, ContainsRegex("\n0 ( +[0-9.e-]+){5}\n1 ( +[0-9.e-]+){5}\nsum "));
  EXPECT_THAT(result.output, HasSubstr("verified against f32 at "));
  EXPECT_THAT(Convert({}).output, Not(HasSubstr("gate_up_proj    down_proj")));
}

TEST_F(ConvertAndVerify, ATextOfTheUsersIsRead) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "Sentence " + std::to_string(i) + ".\n";
  support::WriteFile(folder_ / "text", text);
  const RunResult result = Convert({"--verify-text", folder_ / "text", "--weights", "int8"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  // More than the short texts have, in several windows.
  EXPECT_THAT(result.output, ContainsRegex("verified against f32 at [0-9]{4} positions"));
  EXPECT_THAT(result.output, HasSubstr("gate_up_proj"));
}

TEST_F(ConvertAndVerify, AModelThatIsWrongReplacesNothing) {
  ASSERT_EQ(Convert({}).exit_code, 0);
  const std::string good = support::ReadFile(folder_ / "model.cria");
  ASSERT_EQ(Convert({"--weights", "f32"}).exit_code, 0);
  const std::string good_f32 = support::ReadFile(folder_ / "model.cria");
  const support::CheckpointSpec spec = support::SpecGqa();
  reference::ReferenceModel model = support::MakeModel(spec);
  model.tensors.at("model.layers.1.mlp.down_proj.weight")
      .values.assign(model.tensors.at("model.layers.1.mlp.down_proj.weight").values.size(), 3e38f);
  support::WriteHuggingFaceDirectory(model, folder_ / "checkpoint", spec.format);
  for (const bool is_f32 : {false, true}) {
    for (const bool has_older : {true, false}) {
      SCOPED_TRACE(is_f32);
      const std::string& older = is_f32 ? good_f32 : good;
      std::filesystem::remove(folder_ / "model.cria");
      if (has_older) support::WriteFile(folder_ / "model.cria", older);
      const RunResult result = Convert({"--weights", is_f32 ? "f32" : "int4"});
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_EQ(result.output, "");
      EXPECT_THAT(result.error, HasSubstr("failed the verification"));
      const std::vector<std::string> left = support::FileNames(folder_.path());
      if (has_older) {
        EXPECT_THAT(left, ElementsAre("checkpoint", "model.cria"));
        EXPECT_EQ(support::ReadFile(folder_ / "model.cria"), older);
      } else {
        EXPECT_THAT(left, ElementsAre("checkpoint"));
      }
    }
  }
}

// The model is whole; only its verification, which needs more room, is not possible.
TEST_F(ConvertAndVerify, WithoutRoomToVerifyAModelIsNotVerified) {
  ASSERT_EQ(Convert({"--no-verify"}).exit_code, 0);
  const std::string whole = support::ReadFile(folder_ / "model.cria");
  std::filesystem::remove(folder_ / "model.cria");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, std::vector<std::string>{"--verify"}}) {
    std::vector<std::string> all = {support::kConvertProgram, "--fast", folder_ / "checkpoint",
                                    "-o", folder_ / "model.cria"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const RunResult result = RunProgram(all, {.file_size_limit_bytes = whole.size()});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("\nnot verified: the checkpoint could not be converted to "
                                         "f32, to compare with: "));
    EXPECT_THAT(result.output, HasSubstr("there is no room for its "));
    EXPECT_EQ(support::ReadFile(folder_ / "model.cria"), whole);
    std::filesystem::remove(folder_ / "model.cria");
  }
  const RunResult impossible = RunProgram(
      {support::kConvertProgram, "--fast", folder_ / "checkpoint", "-o", folder_ / "model.cria"},
      {.file_size_limit_bytes = whole.size() - 1});
  EXPECT_EQ(impossible.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model.cria"));
}

TEST_F(ConvertAndVerify, WhatCannotBeMeantIsRefused) {
  support::WriteFile(folder_ / "text", "A text.");
  EXPECT_EQ(Convert({"--verify-text", folder_ / "text", "--no-verify"}).exit_code, 2);
  const RunResult missing = Convert({"--verify-text", folder_ / "nowhere"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.error, HasSubstr("cannot read"));
}

}  // namespace
}  // namespace cria
