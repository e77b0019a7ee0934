// Signals during a conversion.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "cli/convert/cria_convert_program.h"
#include "support/emulation.h"
#include "support/files.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunOptions;
using support::RunResult;
using testing::ElementsAre;
using testing::IsEmpty;
using Path = std::filesystem::path;

// Interrupts conversions after they have begun to write.
class InterruptedConversion : public CriaConvertProgram {
 protected:
  void SetUp() override {
    CriaConvertProgram::SetUp();
    support::WriteRandomCheckpoint(support::SpecNamed("stories15m"), larger_);
  }

  // If the program ended before this process could send the signal, the test tries again.
  RunResult ConvertAndSend(int signal) {
    constexpr int kMaxAttempts = 20;
    RunOptions options;
    options.after_start = [&](int program) {
      const auto is_begun = [&] { return !support::FileNames(output_.parent_path()).empty(); };
      for (int waited_ms = 0; waited_ms < 60'000 && !is_begun(); ++waited_ms) usleep(1000);
      kill(program, signal);
    };
    RunResult result;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      result = Convert({larger_, "--fast", "-o", output_, "-t", "1"}, options);
      if (result.exit_code != 0) break;
      std::filesystem::remove(output_);
    }
    return result;
  }

  Path larger_ = folder_ / "larger";
};

TEST_F(InterruptedConversion, ASignalEndsItWithoutAFile) {
  // Libraries end a program by SIGABRT.
  std::vector<int> signals = {SIGINT, SIGABRT};
  if (!support::IsEmulated()) {
    signals.insert(signals.end(), {SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU});
  }
  for (const int signal : signals) {
    const RunResult result = ConvertAndSend(signal);
    EXPECT_EQ(result.signal, signal) << result.error;
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(support::FileNames(output_.parent_path()), IsEmpty());
  }
}

TEST_F(InterruptedConversion, WhatAKilledOneLeavesIsInNobodysWay) {
  EXPECT_EQ(ConvertAndSend(SIGKILL).signal, SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_EQ(Convert({checkpoint_, "-o", output_}).exit_code, 0);
  EXPECT_THAT(support::FileNames(output_.parent_path()), ElementsAre("model.cria"));
}

}  // namespace
}  // namespace cria
