// Tests which files remain after a program that packs was killed or stopped, and that several
// programs can pack at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cli/packing_fixture.h"
#include "core/format.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

using support::RunProgram;
using support::RunResult;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

bool IsTemporary(const std::string& name) { return name.find(".tmp-") != std::string::npos; }

// Has six million weights, whose packing takes tens of milliseconds.
struct LargeModel {
  static void Make(const std::string& checkpoint, const std::string& model) {
    const RunResult made =
        RunProgram({support::kMakeCheckpointProgram, "-o", checkpoint, "--shape", "stories15m",
                    "--vocab-size", "2000", "--num-hidden-layers", "6"});
    ASSERT_EQ(made.exit_code, 0) << made.error;
    ConvertToInt8(checkpoint, model);
  }
};

class PackCrash : public PackingTest<LargeModel> {
 protected:
  std::vector<std::string> PackArguments() const {
    return {"pack", "-m", ModelPath(), "--pack-cache", Folder(), "-t", "2"};
  }
  size_t Leftovers() const {
    return static_cast<size_t>(std::ranges::count_if(support::FileNames(Folder()), IsTemporary));
  }
  // Runs these shell commands at once; all must succeed.
  void ExpectAllSucceed(const std::vector<std::string>& commands) {
    std::string script;
    for (const std::string& command : commands) script += command + " & p=\"$p $!\"\n";
    script += "s=0; for i in $p; do wait $i || s=1; done; exit $s\n";
    const RunResult result = RunProgram({"/bin/sh", "-c", script});
    EXPECT_EQ(result.exit_code, 0) << result.error;
  }
  static std::string Quote(const std::vector<std::string>& arguments) {
    std::string line;
    for (const std::string& argument : arguments) line += "'" + argument + "' ";
    return line;
  }
  // Sends SIGINT as soon as the temporary file exists.
  std::function<void(int)> InterruptWhenWriting() {
    return [this](int program) {
      support::Await([&] { return Leftovers() > 0 || support::HasEnded(program); });
      kill(program, SIGINT);
    };
  }
};

TEST_F(PackCrash, KilledAtAnyMomentItLeavesNothingThatHarms) {
  const RunResult whole_run = Cria(PackArguments());
  ASSERT_EQ(whole_run.exit_code, 0);
  const std::string sound = support::ReadFile(Folder() + "/" + support::FileNames(Folder()).at(0));

  std::mt19937 random(7);
  std::uniform_real_distribution<double> moment(0.0, 1.1);
  int killed_while_writing = 0;
  for (int round = 0; round < 50; ++round) {
    // In every second round, the cache already has a whole file.
    if (round % 2 == 0) fs::remove_all(Folder());
    const double processor_seconds = moment(random) * whole_run.processor_seconds;
    const RunResult packed = Cria(PackArguments(), {.after_start = [&](int program) {
                                    support::AwaitProcessorTime(program, processor_seconds);
                                    kill(program, SIGKILL);
                                  }});
    killed_while_writing += packed.signal == SIGKILL && Leftovers() > 0;
    ASSERT_LE(Leftovers(), 1u) << "round " << round;
    const RunResult run = ExpectText();
    // If the cache had the file already, its folder is not searched for temporary files.
    ASSERT_LE(Leftovers(), round % 2 == 0 ? 0u : 1u) << "round " << round;
    const auto names = support::FileNames(Folder());
    const auto file = std::ranges::find_if_not(names, IsTemporary);
    ASSERT_NE(file, names.end());
    ASSERT_TRUE(support::ReadFile(Folder() + "/" + *file) == sound) << "round " << round;
    if (HasFailure()) FAIL() << "round " << round << "\n" << run.error;
  }
  RecordProperty("killed_while_writing", killed_while_writing);
  EXPECT_GE(killed_while_writing, 5);
  ASSERT_EQ(Cria(PackArguments()).exit_code, 0);
  EXPECT_THAT(support::FileNames(Folder()), SizeIs(1));
}

TEST_F(PackCrash, TwoRunsAtOnceOnAnEmptyCache) {
  for (int round = 0; round < 10; ++round) {
    fs::remove_all(Folder());
    const std::string run = Quote(RunArguments({"--pack-cache", Folder(), "-t", "1"}));
    ExpectAllSucceed({run + ">" + Path("a"), run + ">" + Path("b")});
    EXPECT_EQ(support::ReadFile(Path("a")), expected_);
    EXPECT_EQ(support::ReadFile(Path("b")), expected_);
    ASSERT_THAT(support::FileNames(Folder()), SizeIs(1)) << "round " << round;
    EXPECT_THAT(ExpectText().error, Not(HasSubstr("packing")));
  }
}

TEST_F(PackCrash, TwoPackersOfOneFile) {
  const std::string pack = Quote({support::kCriaProgram, "pack", "-m", ModelPath(), "-o",
                                  Path("cache") + "/file", "-t", "1"}) +
                           ">/dev/null";
  fs::create_directory(Folder());
  for (int round = 0; round < 5; ++round) {
    fs::remove(Folder() + "/file");
    ExpectAllSucceed({pack, pack});
    ASSERT_THAT(support::FileNames(Folder()), ElementsAre("file")) << "round " << round;
    ExpectText({"--packed", Folder() + "/file"});
  }
}

TEST_F(PackCrash, RunsGoOnWhileTheFileIsReplaced) {
  fs::create_directory(Folder());
  const std::string file = Folder() + "/file";
  const std::vector<std::string> pack = {support::kCriaProgram, "pack", "-m",
                                         ModelPath(),           "-o",   file};
  ASSERT_EQ(RunProgram(pack).exit_code, 0);
  const std::string run = Quote(RunArguments({"--packed", file, "-t", "1"}));
  std::string runs = "{ ";
  for (int i = 0; i < 5; ++i) runs += run + ">" + Path(Format("text{}", i)) + " && ";
  const std::string replace = "{ for i in 1 2 3 4 5; do " + Quote(pack) + " || exit 1; done; }";
  ExpectAllSucceed({runs + "true; }", replace + " >/dev/null"});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(support::ReadFile(Path(Format("text{}", i))), expected_);
  }
  EXPECT_THAT(support::FileNames(Folder()), ElementsAre("file"));
}

TEST_F(PackCrash, InterruptingEndsWithAnErrorAndLeavesNothing) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{support::kCriaProgram, "pack", "-m", ModelPath(), "--pack-cache",
                                 Folder(), "-t", "1"},
        RunArguments({"--pack-cache", Folder(), "-t", "1"})}) {
    int interrupted = 0;
    for (int round = 0; round < 10 && interrupted < 3; ++round) {
      fs::remove_all(Folder());
      const RunResult result = RunProgram(arguments, {.after_start = InterruptWhenWriting()});
      ASSERT_EQ(result.signal, 0) << result.error;
      EXPECT_EQ(Leftovers(), 0u);
      // The signal came after the file was whole.
      if (support::FileNames(Folder()).size() == 1) continue;
      ++interrupted;
      ExpectError(result, 130, "packing was stopped");
      EXPECT_THAT(result.output, IsEmpty());
      EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
    }
    EXPECT_GE(interrupted, 1) << arguments[1];
  }
}

}  // namespace
}  // namespace cria
