// Files that have no end: every option that names a file is given one, and the program refuses it
// in bounded time and memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cli/demo_model.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;

using Words = std::vector<std::string>;

// The longest text that a command reads has 64 MiB; while it is read, the memory for it is doubled.
constexpr size_t kMaxResidentBytes = size_t{256} << 20;
constexpr double kMaxSeconds = 60;

// A program, or one of its commands.
struct Command {
  std::string program;
  std::string name;  // Empty: the program itself.

  Words words() const { return name.empty() ? Words{program} : Words{program, name}; }
};

std::string HelpOf(const Command& command) {
  Words words = command.words();
  words.push_back("--help");
  const RunResult help = RunProgram(words);
  EXPECT_EQ(help.exit_code, 0) << help.error;
  return help.output;
}

// What --help lists below "Subcommands:", without the server, which is a program of its own.
std::vector<Command> CommandsOf(const std::string& program) {
  std::istringstream lines(HelpOf({program, ""}));
  std::vector<Command> commands;
  const std::regex entry("  ([a-z]+) .*");
  bool is_below = false;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (is_below && std::regex_match(line, match, entry) && match[1] != "serve") {
      commands.push_back({program, match[1]});
    }
    is_below = is_below || line == "Subcommands:";
  }
  return commands;
}

// The options whose value is or may be a file, by their long names, as --help lists them.
Words FileOptionsOf(const Command& command) {
  std::istringstream lines(HelpOf(command));
  const std::regex option("  (?:[A-Za-z-]+,)*(--[a-z-]+) (?:(?:NAME\\|)?FILE|MODEL)\\b.*");
  Words options;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, option)) options.push_back(match[1]);
  }
  return options;
}

bool IsOutput(const std::string& option) {
  return std::ranges::contains(Words{"--output", "--plot", "--save-logits", "--per-token"}, option);
}

class EndlessFiles : public testing::Test {
 protected:
  EndlessFiles() {
    support::WriteFile(text_, "Hello! Who are you? Where do you run?");
    if (mkfifo(pipe_.c_str(), 0600) != 0) throw std::runtime_error("cannot make a named pipe");
  }

  // Options with which the command would do something short.
  Words Usual(const Command& command, const std::string& option) const {
    Words words;
    const std::string& name = command.name;
    if (command.program == support::kConvertProgram) {
      words = {support::kDemoCheckpoint};
      if (name.empty() && option != "--output") {
        words.insert(words.end(), {"-o", folder_ / "out.cria"});
      }
      return words;
    }
    if (option != "--model") words = {"-m", tests::DemoModel()};
    if (command.program == support::kServeProgram) words.insert(words.end(), {"--port", "0"});
    if (name == "chat" || name == "run") words.insert(words.end(), {"-n", "1"});
    if (name == "batch" && option != "--file") words.insert(words.end(), {"-f", text_});
    if (name == "batch" && option != "--output") words.insert(words.end(), {"-o", "/dev/null"});
    if (name == "bench") words.insert(words.end(), {"-p", "8", "-n", "1", "-r", "1"});
    const bool is_text = option == "--file" || option == "--choices";
    if ((name == "eval" || name == "perplexity") && !is_text) {
      words.insert(words.end(), {"-f", text_});
    }
    return words;
  }

  // Runs the command with this file while a process writes into the pipe.
  RunResult Run(const Command& command, const std::string& option, const std::string& file) const {
    Words words = {"/bin/sh", "-c",
                   "exec 9<>\"$0\"; yes >&9 & writer=$!; \"$@\" 9>&-; code=$?; kill $writer; "
                   "exit $code",
                   pipe_};
    const auto add = [&words](const Words& more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    add(command.words());
    add(Usual(command, option));
    add({option, file});
    return RunProgram(
        words,
        {.input = "Hello!\n", .working_directory = folder_.path(), .timeout_seconds = kMaxSeconds});
  }

  void ExpectRefused(const Command& command) {
    for (const std::string& option : FileOptionsOf(command)) {
      ++num_options_;
      const bool is_output = IsOutput(option);
      for (const std::string& file : {std::string("/dev/zero"), pipe_}) {
        // As root, a program could replace the device.
        if (is_output && file != pipe_) continue;
        SCOPED_TRACE(command.program + ' ' + command.name + ' ' + option + ' ' + file);
        const RunResult result = Run(command, option, file);
        EXPECT_FALSE(result.timed_out);
        EXPECT_EQ(result.signal, 0);
        EXPECT_LT(result.peak_resident_bytes, kMaxResidentBytes);
        if (is_output) continue;
        // The plan only asks whether there is a constraint.
        const bool is_read =
            command.name != "plan" || (option != "--json-schema" && option != "--grammar");
        if (!is_read) continue;
        EXPECT_NE(result.exit_code, 0);
        EXPECT_THAT(result.error, HasSubstr(file + ": "));
      }
    }
  }

  support::TemporaryDirectory folder_;
  const std::string text_ = folder_ / "text.txt";
  const std::string pipe_ = folder_ / "endless";
  size_t num_options_ = 0;
};

TEST_F(EndlessFiles, AreRefusedByEveryCommandOfCria) {
  const std::vector<Command> commands = CommandsOf(support::kCriaProgram);
  EXPECT_GE(commands.size(), 10u);
  for (const Command& command : commands) ExpectRefused(command);
  EXPECT_GE(num_options_, 35u) << "has the form of --help changed?";
}

TEST_F(EndlessFiles, AreRefusedByTheServer) {
  ExpectRefused({support::kServeProgram, ""});
  EXPECT_GE(num_options_, 4u);
}

TEST_F(EndlessFiles, AreRefusedByTheConverter) {
  ExpectRefused({support::kConvertProgram, ""});
  ExpectRefused({support::kConvertProgram, "plan"});
  EXPECT_GE(num_options_, 5u);
  for (const char* const command : {"", " plan"}) {
    const RunResult result =
        RunProgram({"/bin/sh", "-c", "exec \"$0\"" + std::string(command) + " /dev/zero",
                    support::kConvertProgram},
                   {.timeout_seconds = kMaxSeconds});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error, HasSubstr("/dev/zero: "));
  }
}

// The program for several ranks has the commands of cria, and no other files.
TEST_F(EndlessFiles, AreThoseOfCriaOnSeveralRanks) {
  if (*support::kMpiProgram == '\0') GTEST_SKIP() << "there is no cria-mpi";
  for (const Command& command : CommandsOf(support::kMpiProgram)) {
    EXPECT_EQ(FileOptionsOf(command), FileOptionsOf({support::kCriaProgram, command.name}));
  }
}

TEST_F(EndlessFiles, AreRefusedAtStandardInput) {
  const auto expect_refused = [&](const char* program, const Words& options) {
    Words words = {"/bin/sh", "-c", "exec \"$@\" </dev/zero", "sh", program};
    words.insert(words.end(), options.begin(), options.end());
    const RunResult result =
        RunProgram(words, {.working_directory = folder_.path(), .timeout_seconds = kMaxSeconds});
    SCOPED_TRACE(testing::PrintToString(options));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error, HasSubstr("standard input: has more than the "));
    EXPECT_LT(result.peak_resident_bytes, kMaxResidentBytes);
  };
  const std::string& model = tests::DemoModel();
  for (const Words& options : {Words{"chat"},
                               {"chat", "-f", "-"},
                               {"chat", "--lines"},
                               {"chat", "--messages", "-"},
                               {"run"},
                               {"run", "-f", "-"},
                               {"template", "--messages", "-"},
                               {"tokenize"},
                               {"tokenize", "-f", "-"},
                               {"embed"},
                               {"embed", "-f", "-"},
                               {"perplexity", "-f", "-"},
                               {"eval", "-f", "-"},
                               {"eval", "--choices", "-"},
                               {"bench", "-p", "8", "-n", "1", "-r", "1", "-f", "-"}}) {
    Words words = options;
    words.insert(words.end(), {"-m", model});
    expect_refused(support::kCriaProgram, words);
  }
  for (const char* const option : {"--calibrate", "--verify-text"}) {
    expect_refused(support::kConvertProgram,
                   {support::kDemoCheckpoint, "-o", folder_ / "out.cria", option, "-"});
  }
}

}  // namespace
}  // namespace cria
