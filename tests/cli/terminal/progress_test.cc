// No progress must remain on a terminal after the results were printed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/progress_bar.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;
using testing::Not;

// The text that a terminal shows after the output; it knows the sequences that progress uses.
std::string Shown(std::string_view output) {
  constexpr std::string_view kEraseToEnd = "\x1b[K";
  std::string shown;
  std::string line;
  size_t column = 0;
  for (size_t i = 0; i < output.size();) {
    if (output.substr(i).starts_with(kEraseToEnd)) {
      line.resize(column);
      i += kEraseToEnd.size();
      continue;
    }
    const char c = output[i++];
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      shown += line + "\n";
      line.clear();
      column = 0;
    } else {
      line.resize(std::max(line.size(), column + 1), ' ');
      line[column++] = c;
    }
  }
  return shown + line;
}

class ProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RunProgram({"/bin/sh", "-c", "command -v script"}).exit_code != 0) {
      GTEST_SKIP() << "there is no program 'script' to run others on a terminal";
    }
    support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecGqa()), Path("checkpoint"),
                                       {});
  }

  std::string Path(const std::string& name) const { return directory_.path() / name; }

  // Runs the program on a terminal, and expects it to draw `progress` and to leave none of it.
  std::string ExpectCleared(const std::vector<std::string>& arguments,
                            const std::string& progress) {
    std::string command;
    for (const std::string& argument : arguments) command += "'" + argument + "' ";
    const RunResult run = RunProgram({"script", "-qec", command, "/dev/null"},
                                     {.environment = {"TERM=xterm", "SHELL=/bin/sh"}});
    EXPECT_EQ(run.exit_code, 0) << run.output << run.error;
    EXPECT_THAT(run.output, HasSubstr("\r" + progress));
    const std::string shown = Shown(run.output);
    EXPECT_THAT(shown, Not(HasSubstr(progress)));
    return shown;
  }

  support::TemporaryDirectory directory_;
};

TEST_F(ProgressTest, IsClearedBeforeResults) {
  const std::string model = Path("model.cria");
  const std::vector<std::string> convert = {support::kConvertProgram,
                                            "--fast",
                                            Path("checkpoint"),
                                            "-o",
                                            model,
                                            "--weights",
                                            "int8",
                                            "--verify"};
  EXPECT_THAT(ExpectCleared(convert, "converting 100%"),
              testing::AllOf(HasSubstr("digest"), HasSubstr("\nverified against f32")));

  support::WriteFile(Path("text"), std::string(300, 'e') + " some words");
  EXPECT_THAT(ExpectCleared({support::kCriaProgram, "perplexity", "-m", model, "-f", Path("text"),
                             "-c", "64", "--no-pack-cache"},
                            "perplexity 100%"),
              testing::ContainsRegex("(^|\n)[0-9]+ tokens, .*\nmean negative log-likelihood"));
  EXPECT_THAT(ExpectCleared({support::kCriaProgram, "pack", "-m", model, "-o", Path("packed")},
                            "packing 100%"),
              HasSubstr(Path("packed") + ": "));
  EXPECT_THAT(ExpectCleared({support::kCriaProgram, "bench", "-m", model, "-p", "8", "-n", "4",
                             "-r", "1", "--no-pack-cache"},
                            "pp8, "),
              testing::ContainsRegex("(^|\n)[|] model "));
}

// A name from a checkpoint cannot control the terminal.
TEST_F(ProgressTest, ItsOwnNameIsOneLine) {
  const RunResult run = RunProgram({support::kConvertProgram, Path("checkpoint"), "-o",
                                    Path("a\nb\u202E.cria"), "--weights", "f32"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.output, HasSubstr("a\\x0ab\\u202e.cria: "));
}

TEST(TimeLeft, IsSaidWhenItIsKnown) {
  using std::chrono::seconds;
  EXPECT_EQ(cli::TimeLeftText(0, 100, seconds(60)), "");
  EXPECT_EQ(cli::TimeLeftText(50, 100, seconds(9)), "");
  EXPECT_EQ(cli::TimeLeftText(50, 100, seconds(47)), ", 40 s left");
  EXPECT_EQ(cli::TimeLeftText(90, 100, seconds(60)), "");
  EXPECT_EQ(cli::TimeLeftText(10, 100, seconds(80)), ", 12 min left");
  EXPECT_EQ(cli::TimeLeftText(10, 100, seconds(470)), ", 1 h 11 min left");
  EXPECT_EQ(cli::TimeLeftText(100, 100, seconds(60)), "");
}

}  // namespace
}  // namespace cria
