// A conversion or packing that is stopped ends at once and leaves no unfinished file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Ends : public testing::Test {
 protected:
  void SetUp() override {
    support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecNamed("stories1m")),
                                       checkpoint_, {});
    ASSERT_EQ(
        RunProgram({support::kConvertProgram, "--fast", checkpoint_, "-o", model_, "--no-verify"})
            .exit_code,
        0);
  }

  std::vector<std::string> ConvertArguments(const std::string& threads = "1") const {
    return {support::kConvertProgram, "--fast", checkpoint_, "-o",
            out_ / "model.cria",      "-t",     threads,     "--verify"};
  }

  // The names of unfinished files.
  std::vector<std::string> Leftovers() const {
    std::vector<std::string> names = support::FileNames(out_);
    std::erase_if(names, [](const std::string& name) {
      return !name.contains(".tmp-") && !name.contains(".verify-");
    });
    return names;
  }

  void EmptyFolder() const {
    std::filesystem::remove_all(out_);
    std::filesystem::create_directory(out_);
  }

  // Runs `arguments` and sends the signal after so much processor time of the program.
  RunResult RunAndSend(const std::vector<std::string>& arguments, int signal,
                       double processor_seconds) const {
    EmptyFolder();
    RunOptions options;
    options.after_start = [&](int program) {
      support::AwaitProcessorTime(program, processor_seconds);
      kill(program, signal);
    };
    return RunProgram(arguments, options);
  }

  // Sends each signal at this number of moments of a run. `interrupted` is the exit code after
  // Ctrl-C; -1 means that the program ends by the signal.
  void ExpectCleanEnds(const std::vector<std::string>& arguments, int moments, int interrupted) {
    EmptyFolder();
    const RunResult whole_run = RunProgram(arguments);
    ASSERT_EQ(whole_run.exit_code, 0) << whole_run.error;
    const double whole = whole_run.processor_seconds;
    int stopped = 0;
    int stopped_at_once = 0;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      for (int moment = 0; moment < moments; ++moment) {
        const RunResult result = RunAndSend(arguments, signal, whole * (moment + 0.5) / moments);
        ASSERT_THAT(Leftovers(), IsEmpty()) << signal << " at " << moment << " of " << moments;
        if (result.exit_code == 0) continue;
        ++stopped;
        // Had it gone on after the signal, the file would be whole.
        stopped_at_once += support::FileNames(out_).empty() ? 1 : 0;
        if (signal == SIGINT && interrupted >= 0 && result.exit_code == interrupted) {
          ASSERT_THAT(result.error, HasSubstr("stopped"));
        } else {
          ASSERT_EQ(result.signal, signal) << result.error;
        }
      }
    }
    EXPECT_GE(stopped, moments);
    EXPECT_GE(stopped_at_once, moments);
  }

  support::TemporaryDirectory folder_;
  std::filesystem::path checkpoint_ = folder_ / "checkpoint";
  std::filesystem::path model_ = folder_ / "model.cria";
  std::filesystem::path out_ = folder_ / "out";
};

TEST_F(Ends, SignalsEndAConversionAtAnyMoment) {
  ExpectCleanEnds(ConvertArguments(), /*moments=*/50, /*interrupted=*/-1);
}

TEST_F(Ends, SignalsEndPackingAtAnyMoment) {
  ExpectCleanEnds({support::kCriaProgram, "pack", "-m", model_, "--pack-cache", out_}, 17, 130);
}

TEST_F(Ends, SignalsEndPackingAStandaloneModelAtAnyMoment) {
  ExpectCleanEnds(
      {support::kCriaProgram, "pack", "-m", model_, "--standalone", "-o", out_ / "packed"}, 17,
      130);
}

TEST_F(Ends, SignalsEndAFirstStartAtAnyMoment) {
  ExpectCleanEnds(
      {support::kCriaProgram, "run", "-m", model_, "-p", "abc", "-n", "1", "--pack-cache", out_},
      17, 130);
}

TEST_F(Ends, RunningOutOfMemoryLeavesNothing) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "a sanitizer reserves terabytes of address space";
  int failed = 0;
  for (const char* threads : {"1", "2"}) {
    for (uint64_t megabytes = 15; megabytes <= 40; ++megabytes) {
      EmptyFolder();
      const RunOptions limit = {.address_space_limit_bytes = megabytes << 20};
      // With less, a library's own start ends the process, by a signal or not.
      if (RunProgram({support::kConvertProgram, "--version"}, limit).exit_code != 0) continue;
      const RunResult result = RunProgram(ConvertArguments(threads), limit);
      failed += result.exit_code != 0;
      // A model that was written is whole, and otherwise there is none.
      EXPECT_EQ(std::filesystem::exists(out_ / "model.cria"), result.exit_code == 0);
      EXPECT_EQ(result.signal, 0) << megabytes << " MiB: " << result.error;
      EXPECT_THAT(Leftovers(), IsEmpty()) << megabytes << " MiB: " << result.error;
      // These are remedies for running a model.
      for (const char* remedy : {"--force", " -c ", "less context", "smaller context"}) {
        EXPECT_THAT(result.error + result.output, Not(HasSubstr(remedy))) << megabytes;
      }
    }
  }
  EXPECT_GT(failed, 4);
}

TEST_F(Ends, CalibratingWithoutMemoryNamesWhatTakesLess) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "a sanitizer reserves terabytes of address space";
  int named = 0;
  for (uint64_t megabytes = 20; megabytes <= 60 && named == 0; megabytes += 2) {
    EmptyFolder();
    const RunResult result =
        RunProgram({support::kConvertProgram, checkpoint_, "-o", out_ / "model.cria", "-t", "1",
                    "--calibration-tokens", "512", "--no-verify"},
                   {.address_space_limit_bytes = megabytes << 20});
    named += result.error.contains("memory ran out; --fast takes less");
    EXPECT_THAT(Leftovers(), IsEmpty()) << megabytes << " MiB: " << result.error;
  }
  EXPECT_EQ(named, 1);
}

TEST_F(Ends, TheNextConversionRemovesWhatKilledOnesLeft) {
  EmptyFolder();
  // Earlier versions of the converter left such a folder.
  const auto abandoned = out_ / "model.cria.verify-aB3xY9";
  std::filesystem::create_directory(abandoned);
  support::WriteFile(abandoned / "f32.cria", "whole");
  support::WriteFile(abandoned / ".f32.cria.tmp-1-0", "half");
  support::WriteFile(out_ / ".model.cria.tmp-1-0", "half");
  // These names are not the converter's.
  for (const char* name : {"model.cria.verify-", "model.cria.verify-aB3xY99",
                           "other.cria.verify-aB3xY9", "model.cria.verify-aB3xY8"}) {
    std::filesystem::create_directory(out_ / name);
  }
  support::WriteFile(out_ / "model.cria.verify-aB3xY8" / "notes", "kept");
  support::WriteFile(out_ / "model.cria.verify-aB3xY7", "kept");
  ASSERT_EQ(RunProgram({support::kConvertProgram, "--fast", checkpoint_, "-o", out_ / "model.cria",
                        "--no-verify"})
                .exit_code,
            0);
  EXPECT_THAT(support::FileNames(out_),
              ElementsAre("model.cria", "model.cria.verify-", "model.cria.verify-aB3xY7",
                          "model.cria.verify-aB3xY8", "model.cria.verify-aB3xY99",
                          "other.cria.verify-aB3xY9"));
  EXPECT_THAT(support::FileNames(out_ / "model.cria.verify-aB3xY8"), ElementsAre("notes"));
}

// The model's, and a copy of the checkpoint to verify it with.
TEST_F(Ends, KilledAtAnyMomentItLeavesTwoFilesAtMostThatTheNextRemoves) {
  EmptyFolder();
  const RunResult whole_run = RunProgram(ConvertArguments());
  ASSERT_EQ(whole_run.exit_code, 0);
  const double whole = whole_run.processor_seconds;
  constexpr int kMoments = 12;
  for (int moment = 0; moment < kMoments; ++moment) {
    RunAndSend(ConvertArguments(), SIGKILL, whole * (moment + 0.5) / kMoments);
    EXPECT_LE(Leftovers().size(), 2u);
  }
  ASSERT_EQ(RunProgram(ConvertArguments()).exit_code, 0);
  EXPECT_THAT(support::FileNames(out_), ElementsAre("model.cria"));
}

TEST_F(Ends, TwoConversionsToOneNameDoNotDisturbEachOther) {
  EmptyFolder();
  std::string script;
  for (const std::string& argument : ConvertArguments()) script += "'" + argument + "' ";
  script = "for i in 1 2 3; do " + script + ">/dev/null & p=\"$p $!\"; done; s=0; " +
           "for i in $p; do wait $i || s=1; done; exit $s";
  const RunResult result = RunProgram({"/bin/sh", "-c", script});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(support::FileNames(out_), ElementsAre("model.cria"));
}

}  // namespace
}  // namespace cria
