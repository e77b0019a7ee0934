// The sessions in README and the page about chatting are what a terminal shows: the lines after
// prompts are typed, and the screen is compared.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "support/terminal_program.h"

namespace cria {
namespace {

struct Session {
  std::string arguments;  // Arguments of cria.
  std::vector<std::string> typed;
  std::string shown;  // From the first prompt to the last answer.
};

// The blocks of code with a chat.
std::vector<Session> SessionsOf(const std::string& pages) {
  std::vector<Session> sessions;
  std::istringstream lines(pages);
  bool is_chat = false;
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kCommand = "$ ./dev cria chat ";
    if (line.starts_with("```")) is_chat = false;
    if (is_chat && (line.starts_with("> ") || line.starts_with(". "))) {
      sessions.back().typed.push_back(line.substr(2));
    }
    const bool is_figures = line.starts_with("prompt ") && line.contains("tok/s");
    if (is_chat && !is_figures && !line.contains("/help lists the commands.")) {
      sessions.back().shown += line + '\n';
    }
    if (line.starts_with(kCommand)) {
      is_chat = true;
      sessions.push_back({.arguments = line.substr(kCommand.size()), .typed = {}, .shown = ""});
    }
  }
  return sessions;
}

TEST(ReadmeSessions, AreWhatATerminalShows) {
  const std::vector<Session> sessions =
      SessionsOf(support::ReadFile(support::SourcePath("README.md")) +
                 support::ReadFile(support::SourcePath("docs/use/chat.md")));
  ASSERT_GE(sessions.size(), 2);
  const support::TemporaryDirectory folder;
  std::filesystem::create_directory_symlink(support::SourcePath("demo"), folder.path() / "demo");
  for (const Session& session : sessions) {
    support::TerminalProgram chat(
        {"/bin/sh", "-c",
         std::string(support::kCriaProgram) + " chat --color off " + session.arguments},
        {.rows = 100,
         .columns = 200,
         .environment = {"XDG_STATE_HOME=" + std::string(folder.path() / "state")},
         .working_directory = folder.path()});
    ASSERT_TRUE(chat.WaitFor("/help lists the commands.\n>")) << chat.Screen();
    for (const std::string& line : session.typed) {
      chat.Type(line + "\r");
      chat.WaitUntilQuiet();
    }
    chat.Type("\x04");
    EXPECT_EQ(chat.WaitForEnd(), 0);
    EXPECT_THAT(chat.Screen(), testing::HasSubstr("\n" + session.shown)) << session.arguments;
  }
}

}  // namespace
}  // namespace cria
