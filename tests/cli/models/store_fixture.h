#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "converter/hub/fake_hub.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria::tests {

// A user with an empty home and a hub that has one model.
class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    support::WriteRandomCheckpoint(support::SpecGqa(), folder_ / "tiny-llama");
    hub_.AddFolder(folder_ / "tiny-llama");
    std::filesystem::create_directory(folder_ / "work");
  }

  std::vector<std::string> Environment() {
    return {
        "HOME=" + Home(),       "XDG_DATA_HOME=",
        "XDG_CACHE_HOME=",      "XDG_STATE_HOME=",
        "CRIA_MODELS=",         "CRIA_MODEL=",
        "CRIA_PACK_CACHE=",     "HF_TOKEN=",
        "CRIA_DOWNLOAD_CACHE=", "HF_ENDPOINT=" + (is_offline_ ? "http://127.0.0.1:1" : hub_.url())};
  }
  support::RunResult Run(std::vector<std::string> arguments, support::RunOptions options = {}) {
    arguments.insert(arguments.begin(), support::kCriaProgram);
    std::vector<std::string> environment = Environment();
    environment.insert(environment.end(), options.environment.begin(), options.environment.end());
    options.environment = std::move(environment);
    options.working_directory = folder_ / "work";
    return support::RunProgram(arguments, options);
  }
  // Answers a message with a model.
  support::RunResult Chat(const std::string& model, std::vector<std::string> more = {"-y"},
                          support::RunOptions options = {}) {
    std::vector<std::string> arguments = {"chat", "-m",     model, "-p", "abc", "-n",
                                          "4",    "--temp", "0",   "-t", "1",   "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(std::move(arguments), std::move(options));
  }
  // What the model of the hub answers, from a file that was converted by hand.
  std::string Answer() {
    const std::string model = folder_ / "by-hand.cria";
    if (!std::filesystem::exists(model)) {
      EXPECT_EQ(support::RunProgram({support::kConvertProgram, folder_ / "tiny-llama", "-o", model})
                    .exit_code,
                0);
    }
    const support::RunResult result = Chat(model);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.output;
  }

  std::string Home() const { return folder_ / "home"; }
  std::filesystem::path Store() const {
    return std::filesystem::path(Home()) / ".local" / "share" / "cria" / "models";
  }
  // The folders of models that are complete, and of others.
  std::vector<std::string> Entries() const {
    std::vector<std::string> names = support::FileNames(Store());
    std::erase(names, ".downloads");
    return names;
  }
  void ExpectOneEntry() const {
    const std::vector<std::string> entries = Entries();
    ASSERT_EQ(entries.size(), 1u) << testing::PrintToString(entries);
    EXPECT_EQ(entries[0].size(), 32u) << entries[0];
    EXPECT_THAT(support::FileNames(Store() / entries[0]),
                testing::ElementsAre("MODEL.json", testing::EndsWith(".cria")));
  }
  static void ExpectSentence(const support::RunResult& result, int exit_code,
                             const std::string& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.error;
    EXPECT_THAT(result.error, testing::HasSubstr(words));
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
    EXPECT_EQ(result.output, "");
  }

  support::TemporaryDirectory folder_;
  const std::string name_ = std::string("hf:") + FakeHub::kRepository;
  bool is_offline_ = false;
  FakeHub hub_;
};

}  // namespace cria::tests
