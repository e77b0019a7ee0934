// cria-convert --verify and --verify-text, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/files.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class ConvertAndVerify : public testing::Test {
 protected:
  ConvertAndVerify() { support::WriteRandomCheckpoint(support::SpecGqa(), folder_ / "checkpoint"); }
  RunResult Convert(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {CRIA_CONVERT_PROGRAM, folder_ / "checkpoint", "-o", folder_ / "model.cria"});
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

TEST_F(ConvertAndVerify, WhatCannotBeMeantIsRefused) {
  support::WriteFile(folder_ / "text", "A text.");
  EXPECT_EQ(Convert({"--verify-text", folder_ / "text", "--no-verify"}).exit_code, 2);
  const RunResult missing = Convert({"--verify-text", folder_ / "nowhere"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.error, HasSubstr("cannot read"));
}

}  // namespace
}  // namespace cria
