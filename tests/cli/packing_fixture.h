#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {

inline support::RunResult Cria(std::vector<std::string> arguments,
                               const support::RunOptions& options = {}) {
  arguments.insert(arguments.begin(), support::kCriaProgram);
  return support::RunProgram(arguments, options);
}

inline void ConvertToInt8(const std::string& checkpoint, const std::string& model) {
  const support::RunResult converted = support::RunProgram(
      {support::kModelConverter, "--fast", checkpoint, "-o", model, "--weights", "int8"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
}

// Tests of packed weights. They share one model, which Maker::Make(checkpoint, model) makes, and
// the text that it generates without a file of packed weights. Each test has a folder of its own.
template <typename Maker>
class PackingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = new support::TemporaryDirectory;
    Maker::Make(shared_->path() / "checkpoint", ModelPath());
    std::filesystem::remove_all(shared_->path() / "checkpoint");
    const support::RunResult run = support::RunProgram(RunArguments({"--no-pack-cache"}));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    expected_ = run.output;
  }
  static void TearDownTestSuite() { delete shared_; }

  static std::string ModelPath() { return shared_->path() / "model.cria"; }
  // The test's pack cache, which does not exist at first.
  std::string Folder() const { return own_.path() / "cache"; }
  std::string Path(const std::string& name) const { return own_.path() / name; }

  static std::vector<std::string> RunArguments(const std::vector<std::string>& more,
                                               const std::string& model = ModelPath()) {
    std::vector<std::string> arguments = {
        support::kCriaProgram, "run", "-m", model, "-p", "abc", "-n", "6", "--temp", "0",
        "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Runs the model and expects the right text.
  support::RunResult ExpectText(const std::vector<std::string>& more,
                                const support::RunOptions& options = {}) {
    support::RunResult run = support::RunProgram(RunArguments(more), options);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(run.output, expected_);
    return run;
  }
  support::RunResult ExpectText() { return ExpectText({"--pack-cache", Folder()}); }

  // Expects a failure: this exit code, and one sentence at the end of standard error.
  static void ExpectError(const support::RunResult& result, int exit_code,
                          const std::string& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.error;
    const size_t sentence = result.error.find("cria: error: ");
    ASSERT_NE(sentence, std::string::npos) << result.error;
    EXPECT_THAT(result.error.substr(sentence), testing::HasSubstr(words));
    EXPECT_EQ(std::count(result.error.begin() + static_cast<ptrdiff_t>(sentence),
                         result.error.end(), '\n'),
              1)
        << result.error;
  }

  static inline support::TemporaryDirectory* shared_ = nullptr;
  static inline std::string expected_;
  support::TemporaryDirectory own_;
};

struct TinyModel {
  static void Make(const std::string& checkpoint, const std::string& model) {
    support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecTied()), checkpoint, {});
    ConvertToInt8(checkpoint, model);
  }
};

}  // namespace cria
