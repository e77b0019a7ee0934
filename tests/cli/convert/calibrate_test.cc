// cria-convert --calibrate, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/family_checkpoint.h"
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
using testing::HasSubstr;
using testing::IsEmpty;

class ConvertWithCalibration : public testing::Test {
 protected:
  ConvertWithCalibration() {
    support::WriteRandomCheckpoint(support::SpecGqa(), folder_ / "checkpoint");
    std::filesystem::create_directory(folder_ / "out");
    for (int i = 0; i < 400; ++i) {
      text_ += "The llama number " + std::to_string(i * 37) + " has eaten " + std::to_string(i) +
               " apples.\n";
    }
    support::WriteFile(folder_ / "text.txt", text_);
  }

  RunResult Convert(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), {support::kConvertProgram, folder_ / "checkpoint", "-o",
                                         folder_ / "out" / "model.cria", "--no-verify"});
    return RunProgram(arguments, {.input = input});
  }

  support::TemporaryDirectory folder_;
  std::string text_;
};

TEST_F(ConvertWithCalibration, SaysWhatItDid) {
  const RunResult result = Convert({"--calibrate", folder_ / "text.txt"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, ContainsRegex("\ncalibrated [1-8] of 8 matrices with [0-9]+ tokens"));
  EXPECT_THAT(result.output, HasSubstr("of those of rounding, for text that was held back\n"));
  EXPECT_THAT(support::FileNames(folder_ / "out"), testing::ElementsAre("model.cria"));
}

TEST_F(ConvertWithCalibration, WeightsAreCalibratedWithoutBeingAskedFor) {
  const auto calibrated = ContainsRegex(
      "\ncalibrated [0-8] of 8 matrices with 2048 tokens: .*\n"
      "the most likely token is that of the original at [0-9.]+% of [0-9]+ positions of this "
      "text\n");
  const auto rounded =
      ContainsRegex("\neach weight is rounded: without --fast, .* a third as much");
  const std::string model = folder_ / "out" / "model.cria";
  const RunResult result = Convert({"--calibration-tokens", "2048"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, testing::AllOf(calibrated, testing::Not(rounded)));
  const std::string of_text = support::ReadFile(model);
  const RunResult fast = Convert({"--fast"});
  EXPECT_EQ(fast.exit_code, 0) << fast.error;
  EXPECT_THAT(fast.output, testing::AllOf(rounded, testing::Not(HasSubstr("\ncalibrated"))));
  EXPECT_NE(support::ReadFile(model), of_text);
  EXPECT_THAT(Convert({"--weights", "int8", "--calibration-tokens", "2048"}).output, calibrated);
  EXPECT_THAT(Convert({"--weights", "int8", "--fast"}).output,
              ContainsRegex("\neach weight is rounded: without --fast, .* six tenths as much"));
  EXPECT_THAT(Convert({"--weights", "f32"}).output,
              testing::Not(testing::AnyOf(HasSubstr("\ncalibrated"), HasSubstr("rounded"))));
  EXPECT_THAT(Convert({"--target-bits", "6", "--calibration-tokens", "2048"}).output, calibrated);
}

// The percents of all lines of progress.
std::vector<int> Percents(const std::string& error) {
  std::vector<int> percents;
  std::istringstream lines(error);
  for (std::string line; std::getline(lines, line);) {
    int percent = 0;
    if (std::sscanf(line.c_str(), "converting: %d%% (step ", &percent) == 1) {
      percents.push_back(percent);
    }
  }
  return percents;
}

TEST_F(ConvertWithCalibration, AllStepsAreOneProgress) {
  for (const char* const calibrate : {"--calibrate", "--calibrate-self"}) {
    std::vector<std::string> arguments = {support::kConvertProgram,
                                          folder_ / "checkpoint",
                                          "-o",
                                          folder_ / "out" / "model.cria",
                                          "--target-bits",
                                          "6",
                                          "--verify",
                                          "--calibration-tokens",
                                          "1024",
                                          calibrate};
    if (calibrate == std::string("--calibrate")) arguments.push_back(folder_ / "text.txt");
    const RunResult result = RunProgram(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const std::vector<int> percents = Percents(result.error);
    EXPECT_GT(percents.size(), 2u) << result.error;
    EXPECT_TRUE(std::ranges::is_sorted(percents)) << result.error;
    EXPECT_THAT(result.error, HasSubstr(calibrate == std::string("--calibrate")
                                            ? "converting: 0% (step 1 of 6, measuring a rotation"
                                            : "converting: 0% (step 1 of 7, "));
    // Something is left to do in the last step.
    EXPECT_THAT(result.error, ContainsRegex("step [67] of [67]"));
  }
}

TEST_F(ConvertWithCalibration, SaysHowManyExpertsAreRounded) {
  std::filesystem::remove_all(folder_ / "checkpoint");
  support::WriteFamilyDirectory(support::FamilyNamed("Qwen3MoeBiases"), folder_ / "checkpoint");
  const std::string text = folder_ / "text.txt";
  const RunResult result = RunProgram({support::kConvertProgram, folder_ / "checkpoint", "-o",
                                       folder_ / "out" / "model.cria", "--calibrate", text,
                                       "--calibration-tokens", "256", "--verify"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              ContainsRegex("\n[0-9]+ of 16 experts are rounded, because too few "
                            "tokens reach them: a longer text, by --calibrate, may lose less\n"));
  // The first layer, which is dense, has no such matrices.
  EXPECT_THAT(result.output, ContainsRegex("\nlayer +qkv_proj +o_proj +gate_up_proj +down_proj "
                                           "+experts_gate_up_proj +experts_down_proj +sum\n"));
  EXPECT_THAT(result.output, HasSubstr("\nverified against f32"));
}

TEST_F(ConvertWithCalibration, ReadsStandardInput) {
  ASSERT_EQ(Convert({"--calibrate", folder_ / "text.txt", "--calibration-tokens", "512"}).exit_code,
            0);
  const std::string expected = support::ReadFile(folder_ / "out" / "model.cria");
  const RunResult result = Convert({"--calibrate", "-", "--calibration-tokens", "512"}, text_);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(support::ReadFile(folder_ / "out" / "model.cria"), expected);
}

TEST_F(ConvertWithCalibration, TakesAsManyTokensAsItIsAllowed) {
  const RunResult result =
      Convert({"--calibrate", folder_ / "text.txt", "--calibration-tokens", "512"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("matrices with 512 tokens"));
  // The widest matrix has 128 inputs or more.
  const RunResult few =
      Convert({"--calibrate", folder_ / "text.txt", "--calibration-tokens", "256"});
  EXPECT_THAT(few.output, HasSubstr("these are few tokens for this model"));
}

TEST_F(ConvertWithCalibration, AModelCanWriteItsOwnText) {
  const auto model_of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--calibrate-self", "--calibration-tokens", "2048"});
    const RunResult result = Convert(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, ContainsRegex("\ncalibrated [1-8] of 8 matrices with 2048 tokens"));
    EXPECT_THAT(support::FileNames(folder_ / "out"), testing::ElementsAre("model.cria"));
    return support::ReadFile(folder_ / "out" / "model.cria");
  };
  const std::string model = model_of({"-t", "1"});
  EXPECT_EQ(model_of({"-t", "2"}), model);
  // A conversation needs other codes.
  EXPECT_NE(model_of({"--chat-template", "chatml"}), model);
}

TEST_F(ConvertWithCalibration, ErrorsSayWhatToDo) {
  const auto expect_error = [&](const std::vector<std::string>& arguments, int exit_code,
                                const std::string& words) {
    const RunResult result = Convert(arguments);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error, HasSubstr(words));
    EXPECT_THAT(support::FileNames(folder_ / "out"), IsEmpty());
  };
  expect_error({"--calibrate", "/nowhere.txt"}, 1, "/nowhere.txt: cannot read");
  expect_error({"--calibrate", folder_ / "text.txt", "--weights", "f32"}, 2,
               "weights in f32 lose nothing");
  expect_error({"--calibrate-self", "--weights", "f32"}, 2, "weights in f32 lose nothing");
  expect_error({"--calibrate-self", "--calibrate", folder_ / "text.txt"}, 2, "--calibrate");
  expect_error({"--weights", "f32", "--calibration-tokens", "1024"}, 2,
               "--calibration-tokens needs --calibrate");
  expect_error({"--weights", "f32", "--resume", folder_ / "resume"}, 2,
               "--resume needs --calibrate");
  expect_error({"--fast", "--rotate", "never"}, 2, "--rotate goes without --fast");
  expect_error({"--fast", "--calibrate", folder_ / "text.txt"}, 2, "--calibrate");
  expect_error({"--fast", "--calibrate-self"}, 2, "--calibrate-self");
  expect_error({"--calibrate", folder_ / "text.txt", "--resume", folder_ / "text.txt"}, 1,
               "is not a folder and cannot be made one");
  support::WriteFile(folder_ / "short.txt", "One line.\n");
  expect_error({"--calibrate", folder_ / "short.txt"}, 2, "the calibration text has");
}

}  // namespace
}  // namespace cria
