#include "cli/flags/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A program with an option of every kind, and the values after it ran.
class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    program_.SetVersion("program 1");
    CommandLine& command = program_.AddCommand("do", "Does it");
    command.AddText("INPUT,--input", input_, "What to read").Required();
    command.AddNumber("-c,--count", count_, "How many", uint64_t{1}, uint64_t{9});
    command.AddNumber("--shift", shift_, "By how much", int64_t{-1});
    command.AddNumber("--scale", scale_, "How large");
    command.AddList("-l,--list", list_, "Which ones");
    command.AddChoice("--how", how_, {{"well", 1}, {"badly", 2}}, "How");
    Option& quiet = command.AddFlag("-q,--quiet", quiet_, "Say nothing");
    command.AddFlag("--loud", loud_, "Say all").Excludes(quiet);
    command.AddText("-at,--place", place_, "Where").Environment("CRIA_TEST_PLACE");
    command.AddFlag("--nowhere", [this] { place_.clear(); }, "Not at all");
    command
        .Add(
            "--word", "TEXT",
            [this](std::string_view text) -> Status {
              if (text.empty()) return WrongValue(text, "a word");
              words_.emplace_back(text);
              return {};
            },
            "What to say")
        .Repeatable();
    command.SetAction([this]() -> Status {
      has_run_ = true;
      return {};
    });
  }

  Status Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "do");
    return program_.Run(arguments);
  }
  void ExpectError(const std::vector<std::string>& arguments, const std::string& words) {
    has_run_ = false;
    const Status status = Run(arguments);
    EXPECT_FALSE(has_run_) << words;
    ASSERT_FALSE(status) << words;
    EXPECT_EQ(status.error().code(), ErrorCode::kUsage);
    EXPECT_EQ(status.error().message(), words + "; see program do --help");
  }

  CommandLine program_{"program", "Does things."};
  std::string input_;
  uint64_t count_ = 2;
  int64_t shift_ = 0;
  float scale_ = 0.5f;
  std::vector<size_t> list_ = {512};
  int how_ = 0;
  bool quiet_ = false;
  bool loud_ = false;
  std::string place_ = "here";
  std::vector<std::string> words_;
  bool has_run_ = false;
};

TEST(GivenWordsTest, AreTheOptionsThatWereGiven) {
  std::string text = "default";
  bool flag = false;
  std::vector<size_t> list = {1};
  CommandLine program("program", "Does it");
  program.AddText("-m,--model", text, "A text").Positional();
  program.AddText("--other", text, "Another");
  program.AddFlag("-q,--quiet", flag, "A flag");
  program.AddList("-l,--list", list, "Numbers");
  ASSERT_TRUE(program.Read(std::vector<std::string>{"-q", "a b", "-l", "2", "-l", "3"}));
  EXPECT_THAT(program.GivenWords("--model"), ElementsAre("--quiet", "--list", "2,3"));
  EXPECT_THAT(program.GivenWords(""), ElementsAre("--model", "a b", "--quiet", "--list", "2,3"));
}

TEST_F(CommandLineTest, StoresWhatIsGiven) {
  ASSERT_TRUE(Run({"-c", "3", "file", "--shift", "-1", "--scale=1.5e-1", "--how", "badly", "-q"}));
  EXPECT_TRUE(has_run_);
  EXPECT_EQ(input_, "file");
  EXPECT_EQ(count_, 3);
  EXPECT_EQ(shift_, -1);
  EXPECT_EQ(scale_, 0.15f);
  EXPECT_EQ(how_, 2);
  EXPECT_TRUE(quiet_);
}

TEST_F(CommandLineTest, LeavesDefaultsAsTheyAre) {
  ASSERT_TRUE(Run({"--input", "file"}));
  EXPECT_EQ(count_, 2);
  EXPECT_THAT(list_, ElementsAre(512));
  EXPECT_EQ(place_, "here");
}

TEST_F(CommandLineTest, StoresEachValueOfARepeatableOption) {
  ASSERT_TRUE(Run({"file", "--word", "a,b", "-q", "--word=c", "--word", "c"}));
  EXPECT_THAT(words_, ElementsAre("a,b", "c", "c"));
  ExpectError({"file", "--word", "a", "--word", ""}, "--word: \"\" is not a word");
}

TEST_F(CommandLineTest, ReadsAValueInTheSameWord) {
  ASSERT_TRUE(Run({"-c7", "--input=a=b"}));
  EXPECT_EQ(count_, 7);
  EXPECT_EQ(input_, "a=b");
}

TEST_F(CommandLineTest, LongNamesMayBeCutShortWhereThatIsClear) {
  ASSERT_TRUE(Run({"--cou", "3", "file"}));
  EXPECT_EQ(count_, 3);
  ExpectError({"a", "--l", "1"}, "there is no option --l");  // --list or --loud?
}

TEST_F(CommandLineTest, ReadsValuesAndWordsThatLookLikeOptions) {
  ASSERT_TRUE(Run({"--place", "--quiet", "--", "-c"}));
  EXPECT_EQ(place_, "--quiet");
  EXPECT_EQ(input_, "-c");
  EXPECT_FALSE(quiet_);
}

TEST_F(CommandLineTest, ReadsNamesOfSeveralLettersBehindOneDash) {
  ASSERT_TRUE(Run({"-at", "there", "file"}));
  EXPECT_EQ(place_, "there");
  ASSERT_TRUE(Run({"-c", "3", "--place", "-at", "file"}));
  EXPECT_EQ(place_, "-at");
  EXPECT_EQ(count_, 3);
  ExpectError({"file", "-at"}, "--place needs a value");
}

TEST_F(CommandLineTest, JoinsLists) {
  ASSERT_TRUE(Run({"file", "-l", "1,2", "--list", "3"}));
  EXPECT_THAT(list_, ElementsAre(1, 2, 3));
}

TEST_F(CommandLineTest, AsksTheEnvironmentForWhatIsNotGiven) {
  setenv("CRIA_TEST_PLACE", "there", 1);
  EXPECT_TRUE(Run({"file"}));
  EXPECT_EQ(place_, "there");
  setenv("CRIA_TEST_PLACE", "", 1);
  place_ = "here";
  EXPECT_TRUE(Run({"file"}));
  EXPECT_EQ(place_, "here");
  unsetenv("CRIA_TEST_PLACE");
}

TEST_F(CommandLineTest, StoresInTheOrderOfTheOptions) {
  setenv("CRIA_TEST_PLACE", "there", 1);
  EXPECT_TRUE(Run({"--nowhere", "file"}));
  EXPECT_EQ(place_, "");
  unsetenv("CRIA_TEST_PLACE");
}

TEST_F(CommandLineTest, TellsWhatIsWrong) {
  ExpectError({}, "--input is missing");
  ExpectError({"a", "b"}, "\"b\" is one argument too many");
  ExpectError({"a", "-x"}, "there is no option -x");
  ExpectError({"a", "--quick"}, "there is no option --quick (the nearest is --quiet)");
  ExpectError({"a", "--quick=1"}, "there is no option --quick (the nearest is --quiet)");
  ExpectError({"a", "--nothing-like-it"}, "there is no option --nothing-like-it");
  ExpectError({"a", "--quiet=1"}, "--quiet takes no value");
  ExpectError({"a", "-c"}, "--count needs a value");
}

// getopt reads an unknown word as letters: -qh would print the help, and -cq count to q.
TEST_F(CommandLineTest, LettersBehindOneDashAreNotJoined) {
  ExpectError({"a", "-qh"}, "there is no option -qh");
  ExpectError({"a", "-hq"}, "there is no option -hq");
  ExpectError({"a", "-cq"}, "there is no option -cq");
  ExpectError({"a", "-lop"}, "there is no option -lop");
  ExpectError({"a", "-qhite"}, "there is no option -qhite (the nearest is --quiet)");
  // Only behind two dashes, a name may be cut short.
  ExpectError({"a", "-qui"}, "there is no option -qui");
  ASSERT_TRUE(Run({"file", "-count", "3", "-l1,2", "-quiet"}));
  EXPECT_EQ(count_, 3);
  EXPECT_THAT(list_, ElementsAre(1, 2));
  EXPECT_TRUE(quiet_);
  // Values may be any words.
  ASSERT_TRUE(Run({"--word", "-qh", "-at", "-hf", "--", "-qh"}));
  EXPECT_EQ(input_, "-qh");
  EXPECT_EQ(place_, "-hf");
}

TEST_F(CommandLineTest, OptionsOfOtherProgramsAreExplained) {
  ExpectError(
      {"a", "-hf", "x/y"},
      "there is no option -hf here: `cria-convert hf:ORG/NAME` downloads a model of the hub "
      "and makes the file for -m");
  ExpectError({"a", "-ngl", "99"},
              "there is no option -ngl here: Cria computes on the processor and uses no GPU, so "
              "leave it out");
  ExpectError({"a", "--n-gpu-layers=99"},
              "there is no option --n-gpu-layers here: Cria computes on the processor and uses no "
              "GPU, so leave it out");
  ExpectError({"a", "-i"},
              "there is no option -i here: `cria chat` converses and `cria run` continues a text, "
              "so leave it out");
  for (const char* name :
       {"-fa", "--flash-attn", "--mlock", "--no-mmap", "-ub", "--numa", "-cnv", "--jinja", "-ctk",
        "-ctv", "--chat-template", "--color", "-sm", "--temperature", "--api-key", "--outtype"}) {
    const Status status = Run({"a", name});
    ASSERT_FALSE(status) << name;
    EXPECT_THAT(status.error().message(),
                HasSubstr(std::string("there is no option ") + name + " here: "));
  }
  // An option that the command has is its own.
  program_.AddCommand("color", "Colors").AddFlag("--color", quiet_, "Color it");
  const std::vector<std::string> arguments = {"color", "--color"};
  EXPECT_EQ(program_.Run(arguments).error().message(),
            "no command is given; see program color --help");
}

TEST_F(CommandLineTest, AValueMayStandWithoutItsName) {
  std::string model;
  CommandLine& command = program_.AddCommand("load", "Loads");
  command.AddText("-m,--model", model, "What to load").Required().Positional().Metavar("FILE");
  command.SetAction([]() -> Status { return {}; });
  const auto load = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "load");
    const Status status = program_.Run(arguments);
    return status ? "" : status.error().message();
  };
  EXPECT_EQ(load({"a.cria"}), "");
  EXPECT_EQ(model, "a.cria");
  EXPECT_EQ(load({"-m", "b.cria"}), "");
  EXPECT_EQ(model, "b.cria");
  EXPECT_EQ(load({"-m", "b.cria", "a.cria"}),
            "\"a.cria\" is one argument too many; see program load --help");
  EXPECT_EQ(load({"a.cria", "b.cria"}),
            "\"b.cria\" is one argument too many; see program load --help");
  EXPECT_EQ(load({}), "--model is missing; see program load --help");
  testing::internal::CaptureStdout();
  EXPECT_EQ(load({"--help"}), "");
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("Usage: program load [OPTIONS] FILE\n"));
}

TEST_F(CommandLineTest, TellsWhatIsWrongWithValues) {
  ExpectError({"a", "-c", "0"}, "--count: \"0\" is not a whole number from 1 to 9");
  ExpectError({"a", "-c", "3k"}, "--count: \"3k\" is not a whole number from 1 to 9");
  ExpectError({"a", "-c", ""}, "--count: \"\" is not a whole number from 1 to 9");
  ExpectError({"a", "--shift", "-2"}, "--shift: \"-2\" is not a whole number of -1 or more");
  ExpectError({"a", "--scale", "big"}, "--scale: \"big\" is not a number");
  ExpectError({"a", "--scale", "1e99"}, "--scale: \"1e99\" is not a number");
  ExpectError({"a", "-l", "1,,2"},
              "--list: \"1,,2\" is not a list of whole numbers with commas between them");
  ExpectError({"a", "--how", "slowly"}, "--how: \"slowly\" is not well or badly");
}

TEST_F(CommandLineTest, TellsWhatDoesNotGoTogether) {
  ExpectError({"a", "--loud", "--quiet"}, "--loud and --quiet exclude each other");
  ExpectError({"a", "-c", "1", "--count", "2"}, "--count is given more than once");
}

TEST_F(CommandLineTest, WantsACommandThatThereIs) {
  EXPECT_EQ(program_.Run({}).error().message(), "no command is given; see program --help");
  const std::vector<std::string> unknown = {"undo"};
  EXPECT_EQ(program_.Run(unknown).error().message(),
            "there is no command \"undo\"; see program --help");
  program_.AddCommand("info", "Shows");
  const std::vector<std::string> swapped = {"inof"};
  EXPECT_EQ(program_.Run(swapped).error().message(),
            "there is no command \"inof\" (the nearest is info); see program --help");
}

TEST_F(CommandLineTest, AFileInThePlaceOfACommandIsForTheCommandOfFiles) {
  CommandLine program("program", "Does things");
  std::string file;
  size_t runs = 0;
  CommandLine& command = program.AddCommand("open", "Opens");
  command.AddText("-m,--model", file, "A file").Positional();
  bool loud = false;
  command.AddFlag("--loud", loud, "Loud");
  command.SetAction([&]() -> Status {
    ++runs;
    return {};
  });
  const support::TemporaryDirectory directory;
  const std::string there = directory.path() / "open";
  support::WriteFile(there, "");
  const std::vector<std::string> arguments = {there, "--loud"};
  EXPECT_EQ(program.Run(arguments).error().message(),
            "there is no command \"" + there + "\"; see program --help");
  program.SetCommandOfFiles("open");
  ASSERT_TRUE(program.Run(arguments));
  EXPECT_EQ(file, there);
  EXPECT_TRUE(loud);
  // A name of a model file need not exist: the command says what it lacks.
  ASSERT_TRUE(program.Run(std::vector<std::string>{"missing.cria"}));
  EXPECT_EQ(file, "missing.cria");
  // A command has precedence over a file of its name.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  EXPECT_TRUE(program.Run(std::vector<std::string>{"open"}));
  std::filesystem::current_path(before);
  EXPECT_EQ(file, "missing.cria");
  EXPECT_EQ(runs, 3u);
  EXPECT_FALSE(program.Run(std::vector<std::string>{"missing"}));
  EXPECT_FALSE(program.Run(std::vector<std::string>{""}));
  EXPECT_FALSE(program.Run(std::vector<std::string>{"-missing.cria"}));
}

TEST_F(CommandLineTest, HelpNeedsNothingElse) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(Run({"--help"}));
  EXPECT_FALSE(has_run_);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, HasSubstr("Usage: program do [OPTIONS] INPUT\n"));
  EXPECT_THAT(help, HasSubstr("  -c,--count UINT [2]         How many\n"));
}

TEST(WrapHelpTest, LinesEndAtTheWidthOfATerminalAndNoneBeginsWithADash) {
  EXPECT_EQ(WrapHelp("Short"), "Short");
  EXPECT_EQ(WrapHelp(""), "");
  const std::string indent = "\n" + std::string(30, ' ');
  EXPECT_EQ(WrapHelp("A text that has exactly as many as fifty characters"),
            "A text that has exactly as many as fifty" + indent + "characters");
  EXPECT_EQ(WrapHelp("A text that has exactly as many as 50 characters.. and"),
            "A text that has exactly as many as 50 characters.." + indent + "and");
  EXPECT_EQ(WrapHelp("Maximum number of tokens of an answer that is, or: -1 or 0"),
            "Maximum number of tokens of an answer that is," + indent + "or: -1 or 0");
  const std::string long_word(60, 'x');
  EXPECT_EQ(WrapHelp("a " + long_word + " b"), "a" + indent + long_word + indent + "b");
}

TEST_F(CommandLineTest, PrintsItsVersion) {
  const std::vector<std::string> arguments = {"--version"};
  testing::internal::CaptureStdout();
  EXPECT_TRUE(program_.Run(arguments));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "program 1\n");
}

TEST_F(CommandLineTest, ActionsFailInTheirOwnWords) {
  program_.AddCommand("fail", "Fails").SetAction([]() -> Status {
    return Fail(ErrorCode::kIo, "it broke");
  });
  const std::vector<std::string> arguments = {"fail"};
  EXPECT_EQ(program_.Run(arguments).error().message(), "it broke");
}

}  // namespace
}  // namespace cria::cli
