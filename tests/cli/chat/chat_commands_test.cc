// The commands of a chat, typed at a pseudo-terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/chat/interactive_chat_fixture.h"
#include "cli/demo_model.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/terminal_program.h"

namespace cria {
namespace {

using support::TerminalOptions;
using support::TerminalProgram;
using testing::HasSubstr;
using testing::Not;

class ChatCommands : public InteractiveChat {};

TEST_F(ChatCommands, OnlyKnownWordsAreCommands) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("/rest\r");
  ASSERT_TRUE(chat.WaitFor("there is no command /rest (the nearest is /reset); /help"))
      << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("\n>", 2)) << chat.Screen();
  Ask(chat, " /etc/hosts is a file\r");
  EXPECT_TRUE(IsInMessages(chat, "/etc/hosts is a file"));
}

TEST_F(ChatCommands, TabCompletesCommands) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("/he\t\r");
  ASSERT_TRUE(chat.WaitFor("\nwhat is typed, or leaves if nothing is typed.\n")) << chat.Screen();
  chat.Type("/s\t");
  ASSERT_TRUE(chat.WaitFor("/stats")) << chat.Screen();
  chat.Type("et te\t0.5\r");
  ASSERT_TRUE(chat.WaitFor("temp 0.5\n>")) << chat.Screen();
}

TEST_F(ChatCommands, CommandsChangeTheConversation) {
  TerminalProgram chat(Command({"-sys", "Be brief."}), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("Hello! Who are you?\r");
  ASSERT_TRUE(chat.WaitFor("\n>", 2)) << chat.Screen();
  chat.Type("/regen\r");
  ASSERT_TRUE(chat.WaitFor("\n>", 3)) << chat.Screen();
  chat.Type("/show\r");
  ASSERT_TRUE(chat.WaitFor("messages       3")) << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("system prompt  Be brief."));
  chat.Type("/tokens\r");
  ASSERT_TRUE(chat.WaitFor(" of 512 tokens; ")) << chat.Screen();
  chat.Type("/stats\r");
  ASSERT_TRUE(chat.WaitFor("█ private, ▒ mapped, of ")) << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("  the last 2 answers, ")) << chat.Screen();
  chat.Type("/undo\r/undo\r");
  ASSERT_TRUE(chat.WaitFor("there is no message that could be dropped")) << chat.Screen();
  chat.Type("/system Be long.\r/system\r");
  ASSERT_TRUE(chat.WaitFor("\nBe long.\n")) << chat.Screen();
  chat.Type("/set top-k 3\r/set top-k many\r/set size 3\r");
  ASSERT_TRUE(chat.WaitFor("top-k 3\n")) << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("(top-k: \"many\" is not a whole number of 0 or more)"))
      << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("there is no option size")) << chat.Screen();
  chat.Type("/set n 50\r/set n\r/set tmp 1\r/set temp 99\r");
  ASSERT_TRUE(chat.WaitFor("predict 50\n", 2)) << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("no option tmp (the nearest is temp); /set lists them"))
      << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("(temp: \"99\" is not a number from 0 to 10)")) << chat.Screen();
}

TEST_F(ChatCommands, FilesGoBeforeTheNextMessage) {
  TerminalProgram chat(Command(), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  const std::string path = folder_.path() / "note.txt";
  support::WriteFile(path, "a note about llamas");
  Ask(chat, "/read " + path + kEnter);
  EXPECT_THAT(chat.Screen(), HasSubstr("(19 B of "));
  Ask(chat, "Hello! Who are you?\r");
  EXPECT_TRUE(IsInMessages(chat, "a note about llamas\n\nHello! Who are you?"));
  Ask(chat, "Hello!\r");
  Ask(chat, "/undo\r");
  support::WriteFile(path, "\xff\xfe");
  chat.Type("/read " + path + "\r/read " + path + ".none\r/read\r");
  ASSERT_TRUE(chat.WaitFor("is no text in UTF-8)")) << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("(/read needs the name of a file)")) << chat.Screen();
  chat.Type("/read /dev/zero\r");
  ASSERT_TRUE(chat.WaitFor("has more than the 65536 bytes that")) << chat.Screen();
}

TEST_F(ChatCommands, AConversationIsExported) {
  TerminalProgram chat(Command({"-sys", "Be brief."}), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, "Hello! Who are you?\r");
  const std::string text = folder_.path() / "chat.md";
  Ask(chat, "/export " + text + kEnter);
  EXPECT_THAT(support::ReadFile(text),
              testing::StartsWith("## system\n\nBe brief.\n\n## user\n\nHello! Who are you?\n\n"
                                  "## assistant\n\n"));
  const std::string json = folder_.path() / "chat.json";
  Ask(chat, "/export " + json + kEnter);
  const support::RunResult again =
      support::RunProgram({support::kCriaProgram, "chat", "-m", tests::DemoModel(), "--temp", "0",
                           "-q", "--messages", json, "-p", "Hello! Who are you?"});
  EXPECT_EQ(again.exit_code, 0) << again.error;
  chat.Type("/export " + json + kEnter);
  ASSERT_TRUE(chat.WaitFor("exists; choose another name)")) << chat.Screen();
}

TEST_F(ChatCommands, RetryChoosesAnotherSeed) {
  TerminalProgram chat(Command({"-s", "3", "-n", "30"}), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, "/set temp 1.5\r");
  Ask(chat, "Hello! Who are you?\r");
  Ask(chat, "/retry\r");
  EXPECT_THAT(chat.Screen(), HasSubstr("(seed "));
  Ask(chat, "/tokens\r");
  EXPECT_THAT(chat.Screen(), HasSubstr("2 messages take"));
  EXPECT_THAT(chat.Screen(), Not(HasSubstr("(seed 3)")));
  chat.Type("/set temp 0\r/retry\r");
  ASSERT_TRUE(chat.WaitFor("every seed gives the same answer")) << chat.Screen();
}

TEST_F(ChatCommands, FiguresFollowEachAnswerIfAskedFor) {
  TerminalOptions wide = Options();
  wide.columns = 250;
  TerminalProgram chat(Command(), wide);
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, "Hello! Who are you?\r");
  EXPECT_EQ(chat.Count("tok/s"), 0) << chat.Screen();
  Ask(chat, "/set figures on\r");
  Ask(chat, "Hello!\r");
  EXPECT_GT(chat.Count("tok/s"), 0) << chat.Screen();
  EXPECT_EQ(chat.Count("of 512 tokens)\n"), 1) << chat.Screen();
}

TEST_F(ChatCommands, AnotherModelGoesOnWithTheConversation) {
  const std::string path = folder_.path() / "other.cria";
  std::filesystem::copy_file(tests::DemoModel(), path);
  TerminalProgram chat(Command({"-sys", "Be brief."}), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, "Hello! Who are you?\r");
  Ask(chat, "/model\r");
  EXPECT_THAT(chat.Screen(), HasSubstr("cria-demo ("));
  const std::string none = folder_.path() / "none.cria";
  chat.Type("/model " + none + kEnter);
  ASSERT_TRUE(chat.WaitFor("none.cria: ")) << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("\n>", 4)) << chat.Screen();
  // A file that cannot be loaded leaves the model that was there.
  support::WriteFile(none, "no model");
  chat.Type("/model " + none + kEnter);
  ASSERT_TRUE(chat.WaitFor("none.cria: ", 2)) << chat.Screen();
  ASSERT_TRUE(chat.WaitFor("\n>", 5)) << chat.Screen();
  const std::string note = folder_.path() / "note.txt";
  support::WriteFile(note, "a note about llamas");
  Ask(chat, "/read " + note + kEnter);
  Ask(chat, "/model " + path + kEnter);
  EXPECT_THAT(chat.Screen(), Not(HasSubstr("other.cria)")));
  Ask(chat, "/model\r");
  EXPECT_THAT(chat.Screen(), HasSubstr("other.cria)"));
  EXPECT_TRUE(IsInMessages(chat, "Be brief."));
  Ask(chat, "/tokens\r");
  EXPECT_THAT(chat.Screen(), HasSubstr("3 messages take"));
  Ask(chat, "Hello! Who are you?\r");
  Ask(chat, "/tokens\r");
  EXPECT_THAT(chat.Screen(), HasSubstr("5 messages take"));
  EXPECT_TRUE(IsInMessages(chat, "a note about llamas\n\nHello! Who are you?"));
}

TEST_F(ChatCommands, AConversationIsSavedAndGoesOn) {
  const std::string path = folder_.path() / "kept";
  {
    TerminalProgram chat(Command(), Options());
    ASSERT_TRUE(chat.WaitFor("\n>"));
    Ask(chat, "My name is Ann.\r");
    chat.Type("/save " + path + "\r");
    ASSERT_TRUE(chat.WaitFor("(saved;")) << chat.Screen();
  }
  TerminalOptions options = Options();
  options.columns = 250;
  options.environment.push_back("HOME=" + folder_.path().string());
  TerminalProgram chat(Command(), options);
  ASSERT_TRUE(chat.WaitFor("\n>"));
  chat.Type("/load " + path + "\r");
  ASSERT_TRUE(chat.WaitFor("kept: 2 messages, ")) << chat.Screen();
  chat.Type("What is my name?\r");
  ASSERT_TRUE(chat.WaitFor("You are Ann.")) << chat.Screen();
  // Neither a file that is none of Cria's nor one that does not exist ends the chat.
  const std::string other = folder_.path() / "other";
  support::WriteFile(other, "precious");
  chat.Type("/save ~/home.session\r");
  ASSERT_TRUE(chat.WaitFor("(saved; /load " + folder_.path().string() + "/home.session"))
      << chat.Screen();
  chat.Type("/save " + other + "\r/load " + other + "\r/load /nowhere/x\r/save\r");
  ASSERT_TRUE(chat.WaitFor("/save needs the name of a file")) << chat.Screen();
  EXPECT_EQ(support::ReadFile(other), "precious");
  chat.Type("/exit\r");
  EXPECT_EQ(chat.WaitForEnd(), 0);
}

TEST_F(ChatCommands, TheSessionFileHasWhatAResetLeaves) {
  const std::string path = folder_.path() / "kept.session";
  TerminalProgram chat(Command({"-sys", "Be brief.", "--session", path}), Options());
  ASSERT_TRUE(chat.WaitFor("\n>"));
  Ask(chat, "My name is Ann.\r");
  EXPECT_TRUE(support::ReadFile(path).contains("My name is Ann."));
  chat.Type("/reset\r");
  ASSERT_TRUE(chat.WaitFor("(forgotten)")) << chat.Screen();
  chat.Type(kCtrlD);
  EXPECT_EQ(chat.WaitForEnd(), 0);
  EXPECT_FALSE(support::ReadFile(path).contains("My name is Ann."));
  EXPECT_TRUE(support::ReadFile(path).contains("Be brief."));
}

}  // namespace
}  // namespace cria
