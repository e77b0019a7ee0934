#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {

// Runs cria-convert with a small checkpoint.
class CriaConvertProgram : public testing::Test {
 protected:
  void SetUp() override {
    support::WriteRandomCheckpoint(support::SpecGqa(), checkpoint_);
    std::filesystem::create_directory(folder_ / "out");
  }

  static support::RunResult Convert(std::vector<std::string> arguments,
                                    const support::RunOptions& options = {}) {
    arguments.insert(arguments.begin(), support::kConvertProgram);
    return support::RunProgram(arguments, options);
  }

  // Expects a failure: one sentence, nothing on standard output, and no file.
  void ExpectError(const support::RunResult& result, const std::vector<std::string>& words) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, testing::IsEmpty());
    EXPECT_THAT(result.error, testing::StartsWith("cria-convert: error: "));
    for (const std::string& word : words) EXPECT_THAT(result.error, testing::HasSubstr(word));
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
    EXPECT_THAT(support::FileNames(output_.parent_path()), testing::IsEmpty());
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path checkpoint_ = folder_ / "checkpoint";
  std::filesystem::path output_ = folder_ / "out" / "model.cria";
};

}  // namespace cria
