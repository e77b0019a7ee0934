// cria-terminal-picture: types lines at a shell in a terminal, and writes a picture of its screen.
// The lines come from the standard input; each is typed when the prompt of the shell, or of `cria
// chat`, waits for it, as a person would.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/messages.h"
#include "support/files.h"
#include "support/terminal_picture.h"
#include "support/terminal_program.h"

namespace cria::support {
namespace {

std::string LineAtCursor(const TerminalProgram& terminal) {
  const std::string screen = terminal.VisibleScreen();
  size_t begin = 0;
  for (int row = 0; row < terminal.cursor().row; ++row) {
    begin = screen.find('\n', begin);
    if (begin == screen.npos) return "";
    ++begin;
  }
  return screen.substr(begin, screen.find('\n', begin) - begin);
}

bool IsAtPrompt(const TerminalProgram& terminal) {
  const std::string line = LineAtCursor(terminal);
  return terminal.cursor().column == 2 && (line == "$" || line == ">");
}

void AwaitPrompt(TerminalProgram& terminal) {
  if (terminal.WaitUntil([&] { return IsAtPrompt(terminal); })) return;
  throw std::runtime_error("there is no prompt:\n" + terminal.Screen());
}

// An empty line is typed as Ctrl-D, which ends a chat.
void TypeLine(TerminalProgram& terminal, const std::string& line, size_t columns) {
  AwaitPrompt(terminal);
  if (line.size() + 3 > columns) {
    throw std::runtime_error("a line is too long for the terminal: " + line);
  }
  terminal.Type(line);
  if (!terminal.WaitUntil([&] { return LineAtCursor(terminal).ends_with(line); })) {
    throw std::runtime_error("a line is not shown as it was typed: " + line);
  }
  const int row = terminal.cursor().row;
  terminal.Type(line.empty() ? "\x04" : "\r");
  terminal.WaitUntil([&] { return terminal.cursor().row != row; });
}

int Main(int argc, char** argv) {
  cli::CommandLine command("cria-terminal-picture",
                           "Types lines at a shell in a terminal, and draws what it shows.");
  std::string output;
  std::string title;
  uint32_t columns = 80;
  command.AddText("-o", output, "The picture, an SVG file").Required();
  command.AddText("--title", title, "What it shows, for those who cannot see it");
  command.AddNumber("--columns", columns, "How wide the terminal is", 20U, 200U);
  command.SetAction([&]() -> Status {
    TerminalProgram terminal(
        {"/bin/sh", "-i"},
        {.rows = 100, .columns = static_cast<int>(columns), .environment = {"PS1=$ "}});
    for (std::string line; std::getline(std::cin, line);) TypeLine(terminal, line, columns);
    AwaitPrompt(terminal);
    WriteFile(output, TerminalPicture(terminal.screen(), title));
    return {};
  });
  try {
    const Status done = command.Run(std::vector<std::string>(argv + 1, argv + argc));
    return done ? 0 : cli::ReportError("cria-terminal-picture", done.error());
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "cria-terminal-picture: %s\n", exception.what());
    return 1;
  }
}

}  // namespace
}  // namespace cria::support

int main(int argc, char** argv) { return cria::support::Main(argc, argv); }
