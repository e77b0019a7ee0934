// A user at a terminal: keys go into a pseudo-terminal, and its screen is read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "cli/chat/interactive_chat_fixture.h"
#include "cli/demo_model.h"
#include "support/emulation.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/terminal_program.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::TerminalOptions;
using support::TerminalProgram;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kAltEnter = "\033\r";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kUp = "\033[A";
constexpr const char* kHello = "Hello! I am Cria, a baby llama. What would you like to talk about?";

TEST_F(InteractiveChat, AnswersAndLeavesByCtrlD) {
  TerminalOptions options = Options();
  options.columns = 250;
  TerminalProgram chat(Command(), options);
  ASSERT_TRUE(chat.WaitFor("/help lists the commands.\n>")) << chat.Screen();
  chat.Type("Hello! Who are you?");
  chat.Type(kEnter);
  ASSERT_TRUE(chat.WaitFor(std::string("> Hello! Who are you?\n") + kHello + "\n>"))
      << chat.Screen();
  chat.Type(kCtrlD);
  EXPECT_EQ(chat.WaitForEnd(), 0);
  EXPECT_THAT(chat.Screen(), HasSubstr("tok/s"));
  EXPECT_THAT(chat.Screen(), HasSubstr("seed "));
}

TEST_F(InteractiveChat, FiguresBreakBetweenWords) {
  TerminalOptions narrow = Options();
  narrow.columns = 40;
  TerminalProgram chat(Command(), narrow);
  ASSERT_TRUE(chat.WaitFor("2\nthreads. /help lists the commands.\n>")) << chat.Screen();
  Ask(chat, "Hello! Who are you?\r");
  chat.Type(kCtrlD);
  EXPECT_EQ(chat.WaitForEnd(), 0);
  std::string rows = chat.Screen();
  std::ranges::replace(rows, '\n', ' ');
  const std::regex figures(
      R"(prompt \d+ tokens \(\d+ reused\), [\d.]+ tok/s \| decode \d+ tokens, [\d.]+ tok/s, [\d.]+ GB/s )"
      R"(\| load [\d.]+ ms, first token [\d.]+ ms \| \d+ threads?, peak memory [\d.]+ MB )"
      R"(\| seed \d+ \| context \d+ of 512 tokens)");
  EXPECT_TRUE(std::regex_search(rows, figures)) << chat.Screen();
}

TEST_F(InteractiveChat, CtrlCDropsWhatIsTypedAndLeavesWhereNothingIs) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("never sent");
  ASSERT_TRUE(chat.WaitFor("> never sent"));
  chat.Type(kCtrlC);
  ASSERT_TRUE(chat.WaitFor("never sent^C\n>")) << chat.Screen();
  Ask(chat, "Hello! Who are you?\r");
  EXPECT_THAT(chat.Screen(), HasSubstr(kHello));
  EXPECT_FALSE(IsInMessages(chat, "never sent"));
  chat.Type(kCtrlC);
  EXPECT_EQ(chat.WaitForEnd(), 0);
}

TEST_F(InteractiveChat, AMessageOfTooManyLinesIsDroppedAndTheChatGoesOn) {
  if (support::IsEmulated()) GTEST_SKIP() << "the program reads keys more slowly than they come";
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("\"\"\"\r");
  for (int i = 1; i <= 70; ++i) {
    ASSERT_TRUE(chat.WaitFor("\n.", i)) << chat.Screen();
    chat.Type(std::string(1000, 'q') + kEnter);
  }
  Ask(chat, "\"\"\"\r");
  EXPECT_THAT(chat.Screen(), HasSubstr("(the message has more than the 65536 bytes that can fit"));
  Ask(chat, "Hello! Who are you?\r");
  EXPECT_THAT(chat.Screen(), HasSubstr(kHello));
  chat.Type(kCtrlD);
  EXPECT_EQ(chat.WaitForEnd(), 0);
}

// Without its stop tokens, the model goes on until the context is full, and with a shift for ever.
TEST_F(InteractiveChat, CtrlCStopsAnAnswerAndTheChatGoesOn) {
  const std::vector<std::string> command = Command(tests::EndlessAnswers());
  TerminalProgram chat(command, Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  for (int times = 1; times <= 2; ++times) {
    const int lines = chat.Count("\n");
    chat.Type("Hello!\r");
    ASSERT_TRUE(chat.WaitFor("\n", lines + 20)) << chat.Screen();
    chat.Type(kCtrlC);
    ASSERT_TRUE(chat.WaitFor("(stopped)", times)) << chat.Screen();
  }
  EXPECT_TRUE(chat.WaitFor("the oldest turns are forgotten from now on"));
  ASSERT_TRUE(chat.WaitFor("\n>", 3)) << chat.Screen();
  chat.Type(kCtrlC);
  EXPECT_EQ(chat.WaitForEnd(), 0) << chat.Screen();
}

TEST_F(InteractiveChat, AFullContextIsToldWithWhatHelps) {
  std::vector<std::string> options = tests::EndlessAnswers();
  options.insert(options.end(), {"--context-full", "stop"});
  TerminalOptions wide = Options();
  wide.columns = 250;
  TerminalProgram chat(Command(options), wide);
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("Hello!\r");
  const std::string advice = "/reset begins a new conversation, /set context-full shift";
  ASSERT_TRUE(chat.WaitFor("(the context of 512 tokens is full: " + advice)) << chat.Screen();
  chat.Type("More!\r");
  ASSERT_TRUE(chat.WaitFor("more than the 512 tokens of the context; " + advice)) << chat.Screen();
  // A message that is too long by itself needs something else.
  chat.Paste(std::string(3000, 'x') + "\n");
  chat.Type(kEnter);
  ASSERT_TRUE(chat.WaitFor("shorten it)")) << chat.Screen();
}

TEST_F(InteractiveChat, KeysDuringAnAnswerAreForTheNextLine) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("Hello! Who are you?\rWhat is a KV cache?\r\x04");
  EXPECT_EQ(chat.WaitForEnd(), 0);
  EXPECT_THAT(chat.Screen(), HasSubstr(std::string("> Hello! Who are you?\n") + kHello +
                                       "\n> What is a KV cache?\nIt is the memory"));
}

TEST_F(InteractiveChat, APastedTextIsOneMessage) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.WaitUntilQuiet();
  chat.Paste("Hello!\nWho are you?\n\tI am\x01 Ann.");
  ASSERT_TRUE(chat.WaitFor("> Hello!\nWho are you?\n")) << chat.Screen();
  chat.Type(kEnter);
  ASSERT_TRUE(chat.WaitFor("\n>", 2)) << chat.Screen();
  EXPECT_TRUE(IsInMessages(chat, "Hello!\nWho are you?\n\tI am Ann."));
}

TEST_F(InteractiveChat, AMessageMayHaveSeveralLines) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, std::string("first") + kAltEnter + "second" + kEnter);
  Ask(chat, "third\\\rfourth\r");
  Ask(chat, "\"\"\"\rfifth\r/help\r\"\"\"\r");
  Ask(chat, "\"\"\"sixth\rseventh\"\"\"\r");
  EXPECT_TRUE(IsInMessages(chat, "first\nsecond"));
  EXPECT_TRUE(IsInMessages(chat, "third\nfourth"));
  EXPECT_TRUE(IsInMessages(chat, "fifth\n/help"));
  EXPECT_FALSE(IsInMessages(chat, "fifth\n/help\n"));
  EXPECT_TRUE(IsInMessages(chat, "sixth\nseventh"));
  EXPECT_FALSE(IsInMessages(chat, "\"\"\""));
}

TEST_F(InteractiveChat, KeysWithoutAFunctionInsertNothing) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  constexpr const char* kKeys[] = {"\033[2~",  "\033[5~", "\033[6~",   "\033OP",   "\033[15~",
                                   "\033[24~", "\033[Z",  "\033[1;5A", "\033[1;2H"};
  constexpr const char* kHome = "\033[1~";
  constexpr const char* kEnd = "\033[4~";
  constexpr const char* kDelete = "\033[3~";
  constexpr const char* kWordLeft = "\033[1;5D";
  chat.Type("one");
  for (const char* key : kKeys) chat.Type(key);
  Ask(chat, std::string(" three four") + kWordLeft + kWordLeft + "two " + kHome + "zzero " + kHome +
                kDelete + kEnd + "!\r");
  EXPECT_TRUE(IsInMessages(chat, "zero one two three four!"));
}

TEST_F(InteractiveChat, HistoryOutlivesTheChat) {
  {
    TerminalProgram chat(Command(), Options());
    ASSERT_TRUE(chat.WaitFor("\n>"));
    Ask(chat, std::string("Gr\u00fc\u00dfe") + kAltEnter + "second line" + kEnter);
    chat.Type(kCtrlD);
    EXPECT_EQ(chat.WaitForEnd(), 0);
  }
  EXPECT_EQ(std::filesystem::status(HistoryPath()).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(std::filesystem::status(StateHome() + "/cria").permissions(),
            std::filesystem::perms(0700));
  {
    TerminalProgram chat(Command(), Options());
    ASSERT_TRUE(chat.WaitFor("\n>"));
    chat.Type(kUp);
    EXPECT_TRUE(chat.WaitFor("> Gr\u00fc\u00dfe\nsecond line")) << chat.Screen();
  }
  TerminalProgram chat(Command({"--no-history"}), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, std::string(kUp) + "unknown\r");
  EXPECT_THAT(chat.Screen(), Not(HasSubstr("second line")));
  EXPECT_THAT(support::ReadFile(HistoryPath()), Not(HasSubstr("unknown")));
}

TEST_F(InteractiveChat, TwoChatsShareAHistoryOfWhatWasTypedOnce) {
  TerminalProgram one(Command(), Options());
  TerminalProgram other(Command(), Options());
  ASSERT_TRUE(one.WaitFor("\n>"));
  ASSERT_TRUE(other.WaitFor("\n>"));
  Ask(one, "first\r");
  Ask(other, "second\r");
  Ask(one, "third\r");
  EXPECT_THAT(support::ReadFile(HistoryPath()), testing::EndsWith("_\nfirst\nsecond\nthird\n"));
}

TEST_F(InteractiveChat, AHistoryThatCannotBeKeptIsNamed) {
  const std::string not_kept = "what is typed is not kept, as with --no-history)";
  std::filesystem::create_directories(StateHome() + "/cria");
  support::WriteFile(HistoryPath(), "precious\n");
  TerminalOptions options = Options();
  options.columns = 250;
  {
    TerminalProgram chat(Command(), options);
    ASSERT_TRUE(chat.WaitFor("history: is not a history of chats; " + not_kept)) << chat.Screen();
    ASSERT_TRUE(chat.WaitFor("\n>"));
    Ask(chat, "typed\r");
    EXPECT_EQ(support::ReadFile(HistoryPath()), "precious\n");
  }
  {
    options.environment = {"XDG_STATE_HOME=" + HistoryPath()};
    TerminalProgram chat(Command(), options);
    ASSERT_TRUE(chat.WaitFor("history/cria: cannot make this folder: ")) << chat.Screen();
    ASSERT_TRUE(chat.WaitFor(not_kept)) << chat.Screen();
  }
  options.environment = {"XDG_STATE_HOME=", "HOME="};
  TerminalProgram chat(Command(), options);
  ASSERT_TRUE(chat.WaitFor("(HOME is not set; " + not_kept)) << chat.Screen();
}

TEST_F(InteractiveChat, NothingTypedIsLostWithoutALocale) {
  for (const char* locale : {"LC_ALL=C", "LC_ALL=POSIX", "LC_ALL=xx_YY.UTF-8", "LC_ALL=de_DE"}) {
    TerminalOptions options = Options();
    options.environment.push_back(locale);
    TerminalProgram chat(Command(), options);
    ASSERT_TRUE(chat.WaitFor("\n>"));
    Ask(chat, "Gr\u00fc\u00dfe, \u4f60\u597d\r");
    EXPECT_TRUE(IsInMessages(chat, "Gr\u00fc\u00dfe, \u4f60\u597d")) << locale;
    EXPECT_THAT(chat.Screen(), HasSubstr("> Gr\u00fc\u00dfe, \u4f60\u597d\n")) << locale;
  }
}

TEST_F(InteractiveChat, ATerminalThatKnowsNoSequencesGetsNone) {
  TerminalOptions options = Options();
  options.environment.push_back("TERM=dumb");
  TerminalProgram chat(Command(), options);
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, "Hello! Who are you?\r");
  EXPECT_THAT(chat.Screen(), HasSubstr(kHello));
  EXPECT_THAT(chat.output(), Not(HasSubstr("\033")));
}

TEST_F(InteractiveChat, OnlyAnswersGoWhereStandardOutputDoes) {
  std::string command;
  for (const std::string& word : Command()) command += word + ' ';
  const std::string output = folder_.path() / "output";
  const std::string error = folder_.path() / "error";
  for (const bool to_file : {true, false}) {
    TerminalProgram chat({"sh", "-c", command + (to_file ? ">" + output : "2>" + error)},
                         Options());
    ASSERT_TRUE(chat.WaitFor(">"));
    chat.Type("Hello! Who are you?\r/nothing\r\x04");
    EXPECT_EQ(chat.WaitForEnd(), 0);
    EXPECT_THAT(chat.Screen(), HasSubstr("> Hello! Who are you?\n"));
    EXPECT_EQ(chat.Screen().contains(kHello), !to_file);
    EXPECT_EQ(chat.Screen().contains("there is no command"), to_file);
  }
  EXPECT_EQ(support::ReadFile(output), kHello + std::string("\n"));
  EXPECT_THAT(support::ReadFile(error), HasSubstr("there is no command"));
}

TEST_F(InteractiveChat, ResizingDrawsTheLineAgain) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  const std::string line = "one two three four five six seven eight nine ten eleven";
  chat.Type(line);
  ASSERT_TRUE(chat.WaitFor("> " + line));
  chat.Resize(24, 30);
  chat.WaitUntilQuiet();
  EXPECT_THAT(chat.VisibleScreen(),
              HasSubstr("> one two three four five six\nseven eight nine ten eleven"))
      << chat.VisibleScreen();
  chat.Resize(24, 80);
  chat.WaitUntilQuiet();
  EXPECT_THAT(chat.VisibleScreen(), HasSubstr("> " + line + "\n")) << chat.VisibleScreen();
  // The cursor is where it was: the text goes on behind it.
  chat.Type("!");
  EXPECT_TRUE(chat.WaitFor("> " + line + "!\n")) << chat.Screen();
  EXPECT_EQ(chat.VisibleScreen().find("> one"), chat.VisibleScreen().rfind("> one"));
}

// Reading takes longer than a moment, because each token is read alone.
TEST_F(InteractiveChat, ReadingALongMessageShowsItsProgress) {
  const std::string model = folder_.path() / "long.cria";
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.max_position_embeddings = 32768;
  support::WriteHuggingFaceDirectory(support::MakeModel(spec), folder_.path() / "long", {});
  const auto converted = support::RunProgram(
      {support::kModelConverter, "--fast", folder_.path() / "long", "-o", model, "--no-verify"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  std::string text;
  while (text.size() < (support::IsEmulated() ? 3'000 : 20'000)) text += "some words ";
  support::WriteFile(folder_.path() / "long.txt", text);
  TerminalProgram chat({support::kCriaProgram, "chat", "-m", model, "-c", "32768", "-b", "1", "-n",
                        "1", "-f", folder_.path() / "long.txt"},
                       Options());
  EXPECT_EQ(chat.WaitForEnd(), 0) << chat.Screen();
  EXPECT_THAT(chat.output(), HasSubstr("reading"));
  EXPECT_THAT(chat.Screen(), Not(HasSubstr("reading")));  // It is cleared.
}

TEST_F(InteractiveChat, SignalsGiveTheTerminalBack) {
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) {
    TerminalProgram chat(Command(), Options());
    ASSERT_TRUE(chat.WaitFor("\n>"));
    chat.Type("typed");
    ASSERT_TRUE(chat.WaitFor("> typed"));
    chat.Signal(number);
    EXPECT_EQ(chat.WaitForEnd(), -number);
    EXPECT_GT(chat.output().rfind("\033[?2004l"), chat.output().rfind("\033[?2004h"));
  }
}

TEST_F(InteractiveChat, CtrlZStopsItAndFgGoesOn) {
  std::string command;
  for (const std::string& word : Command()) command += word + ' ';
  TerminalProgram shell({"bash", "--norc", "--noprofile", "-i"}, Options());
  shell.Type("PS1='$ '\r" + command + kEnter);
  ASSERT_TRUE(shell.WaitFor("/help lists the commands.\n>")) << shell.Screen();
  shell.Type("Hello! Who");
  ASSERT_TRUE(shell.WaitFor("> Hello! Who"));
  shell.Type("\x1a");
  ASSERT_TRUE(shell.WaitFor("Stopped")) << shell.Screen();
  shell.Type("stty -a | grep -c ' icanon .* echo '; fg\r");
  ASSERT_TRUE(shell.WaitFor("\n1\n")) << shell.Screen();
  ASSERT_TRUE(shell.WaitFor("> Hello! Who", 2)) << shell.Screen();
  shell.Type(" are you?\r");
  ASSERT_TRUE(shell.WaitFor(kHello)) << shell.Screen();
}

TEST_F(InteractiveChat, CtrlZDuringAnAnswerKeepsTheTerminalsModes) {
  std::string command;
  for (const std::string& word : Command(tests::EndlessAnswers())) command += word + ' ';
  TerminalProgram shell({"bash", "--norc", "--noprofile", "-i"}, Options());
  shell.Type("PS1='$ '\r" + command + kEnter);
  ASSERT_TRUE(shell.WaitFor("/help lists the commands.\n>")) << shell.Screen();
  shell.Type("Hello!\r");
  ASSERT_TRUE(shell.WaitFor("\n", 20)) << shell.Screen();
  shell.Type("\x1a");
  ASSERT_TRUE(shell.WaitFor("Stopped")) << shell.Screen();
  shell.Type("stty -a | grep -c ' icanon .* echo '; fg\r");
  ASSERT_TRUE(shell.WaitFor("\n1\n")) << shell.Screen();
  // Neither is shown in the answer.
  ASSERT_TRUE(shell.WaitFor("\n", shell.Count("\n") + 20)) << shell.Screen();
  shell.Type("for later\x03");
  ASSERT_TRUE(shell.WaitFor("(stopped)")) << shell.Screen();
  ASSERT_TRUE(shell.WaitFor("\n> for later")) << shell.Screen();
  EXPECT_EQ(shell.Screen().find("for later"), shell.Screen().rfind("for later"));
  EXPECT_THAT(shell.Screen(), Not(HasSubstr("^C")));
}

TEST_F(InteractiveChat, TheEndOfASingleTurn) {
  TerminalProgram chat(Command({"-st", "-q"}), Options());
  ASSERT_TRUE(chat.WaitFor(">"));
  chat.Type("Hello! Who are you?\r");
  EXPECT_EQ(chat.WaitForEnd(), 0);
  EXPECT_EQ(chat.Screen(), std::string("> Hello! Who are you?\n") + kHello + "\n");
}

}  // namespace
}  // namespace cria
