// cria-convert --target-bits and --target-size, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "support/emulation.h"
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
using testing::Not;

class ConvertForATarget : public testing::Test {
 protected:
  ConvertForATarget() {
    support::WriteRandomCheckpoint(support::SpecGqa(), folder_ / "checkpoint");
    std::string text;
    for (int i = 0; i < 300; ++i) text += "The llama number " + std::to_string(i * 37) + ".\n";
    support::WriteFile(folder_ / "text.txt", text);
  }

  RunResult Convert(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {support::kConvertProgram, folder_ / "checkpoint", "-o",
                                         Model(), "--no-verify"});
    if (!std::ranges::contains(arguments, "--calibrate")) arguments.push_back("--fast");
    return RunProgram(arguments);
  }
  std::string Model() const { return folder_ / "model.cria"; }
  static double BitsOf(const RunResult& result) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(result.output, match, std::regex("([0-9.]+) bits per weight")));
    return std::stod(match[1]);
  }

  support::TemporaryDirectory folder_;
};

TEST_F(ConvertForATarget, TheModelHasTheBitsThatWereAskedFor) {
  const double least =
      BitsOf(Convert({"--weights", "int2", "--embedding", "int2", "--head", "int2"}));
  const double most = BitsOf(Convert({"--weights", "int8"}));
  const std::vector<double> parts =
      support::IsEmulated() ? std::vector{0.5} : std::vector{0.1, 0.5, 0.9};
  for (const double part : parts) {
    const double target = least + part * (most - least);
    const RunResult result = Convert({"--target-bits", std::to_string(target)});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_LE(BitsOf(result), target + 0.005);
    EXPECT_GT(BitsOf(result), target - 0.5);
    EXPECT_THAT(result.output, HasSubstr("It is estimated from the weights"));
    EXPECT_EQ(
        RunProgram({support::kCriaProgram, "run", "-m", Model(), "-p", "a", "-n", "3"}).exit_code,
        0);
  }
}

TEST_F(ConvertForATarget, TheFileHasTheSizeThatWasAskedFor) {
  ASSERT_EQ(Convert({}).exit_code, 0);
  const uint64_t in_int4 = std::filesystem::file_size(Model());
  const uint64_t target = in_int4 + in_int4 / 8;
  const RunResult result = Convert({"--target-size", std::to_string(target), "--calibrate",
                                    folder_ / "text.txt", "--calibration-tokens", "512"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_LE(std::filesystem::file_size(Model()), target);
  EXPECT_GT(std::filesystem::file_size(Model()), in_int4);
  EXPECT_THAT(result.output, HasSubstr("in nats of KL divergence"));
  EXPECT_THAT(result.output, ContainsRegex("layers.1.down_proj .* int[2-8]"));
  EXPECT_THAT(result.output, HasSubstr("calibrated "));
}

TEST_F(ConvertForATarget, TablesHaveAChoiceUnlessTheyAreGiven) {
  const auto table_of = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--target-bits", "4.2", "--calibrate", folder_ / "text.txt",
                                 "--calibration-tokens", "512"});
    const RunResult result = Convert(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_LE(BitsOf(result), 4.205);
    return result.output;
  };
  const std::string chosen = table_of({});
  EXPECT_THAT(chosen, ContainsRegex("\nembed_tokens( +[0-9.e-]+)+ +int[2-6] "));
  EXPECT_THAT(chosen, ContainsRegex("\nlm_head( +[0-9.e-]+)+ +int[2-6] "));
  const std::string given = table_of({"--embedding", "int5", "--head", "int5"});
  EXPECT_THAT(given, Not(ContainsRegex("\nembed_tokens( +[0-9.e-]+)+ +int[0-9] ")));
  EXPECT_THAT(given, ContainsRegex("embed_tokens +w5g64"));
}

TEST_F(ConvertForATarget, AMixIsComparedWithOneOfTwoNumbersOfBits) {
  const std::string bits = std::to_string(BitsOf(Convert({"--weights", "int3"})) + 0.01);
  const std::vector<std::string> flags = {"--target-bits",
                                          bits,
                                          "--embedding",
                                          "int8",
                                          "--head",
                                          "int8",
                                          "--calibrate",
                                          folder_ / "text.txt",
                                          "--calibration-tokens",
                                          "512"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return Convert(more);
  };
  const RunResult result = with({"--resume", folder_ / "resume"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(
      result.output, match,
      std::regex(
          "of held-back text by ([0-9.e-]+) nats of KL divergence, the other way by ([0-9.e-]+)")))
      << result.output;
  EXPECT_LE(std::stod(match[1]), std::stod(match[2]));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "resume")) {
    EXPECT_TRUE(entry.is_directory()) << entry.path();
  }
  const std::string model = support::ReadFile(Model());
  EXPECT_EQ(with({}).exit_code, 0);
  EXPECT_EQ(support::ReadFile(Model()), model);
  EXPECT_THAT(with({"--plan-only"}).output, HasSubstr("a mix of only the two numbers of bits"));
}

TEST_F(ConvertForATarget, APlanWritesNothing) {
  const RunResult result = Convert({"--target-bits", "6", "--plan-only"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("costs of matrices"));
  EXPECT_THAT(result.output, Not(HasSubstr("bits per weight")));
  EXPECT_FALSE(std::filesystem::exists(Model()));
}

TEST_F(ConvertForATarget, WhatCannotBeReachedIsRefused) {
  const auto expect_error = [&](const std::vector<std::string>& arguments, const char* words) {
    const RunResult result = Convert(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(Model()));
  };
  expect_error({"--target-bits", "2"}, "bytes");
  expect_error({"--target-size", "1K"}, "the target of 1000 bytes is less than");
  expect_error({"--target-size", "much"}, "is not a size");
  expect_error({"--target-size", "1M", "--target-bits", "5"}, "--target");
  expect_error({"--target-bits", "5", "--weights", "int8"},
               "a target chooses how many bits each matrix has");
  expect_error({"--plan-only"}, "--plan-only needs --target-size or --target-bits");
}

}  // namespace
}  // namespace cria
