#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/demo_model.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "support/terminal_program.h"

namespace cria {

inline constexpr const char* kEnter = "\r";
inline constexpr const char* kCtrlD = "\x04";

// `cria chat` with the demo model at a pseudo-terminal.
class InteractiveChat : public testing::Test {
 protected:
  static std::vector<std::string> Command(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {support::kCriaProgram,
                                          "chat",
                                          "-m",
                                          tests::DemoModel(),
                                          "--temp",
                                          "0",
                                          "-c",
                                          "512",
                                          "--color",
                                          "off"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  support::TerminalOptions Options() const {
    return {.rows = 24, .columns = 80, .environment = {"XDG_STATE_HOME=" + StateHome()}};
  }
  std::string StateHome() const { return folder_.path() / "state"; }
  std::string HistoryPath() const { return StateHome() + "/cria/history"; }
  // At a prompt: types keys that end with Enter, and waits for the prompt after the answer.
  static void Ask(support::TerminalProgram& chat, const std::string& keys) {
    const int prompts = chat.Count("\n>");
    chat.Type(keys);
    ASSERT_TRUE(chat.WaitFor("\n>", prompts + 1)) << chat.Screen();
  }
  // Whether a message of the conversation has the text: a file that /save writes has all messages.
  bool IsInMessages(support::TerminalProgram& chat, const std::string& text) const {
    const std::string path = folder_.path() / "saved";
    const int saved = chat.Count("(saved;");
    Ask(chat, "/save " + path + kEnter);
    EXPECT_EQ(chat.Count("(saved;"), saved + 1) << chat.Screen();
    return support::ReadFile(path).contains(text);
  }

  support::TemporaryDirectory folder_;
};

}  // namespace cria
