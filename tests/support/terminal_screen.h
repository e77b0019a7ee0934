#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cria::support {

// The screen of a terminal, as libvterm has it, which understands what xterm does.
class TerminalScreen {
 public:
  TerminalScreen(int rows, int columns);
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;
  ~TerminalScreen();

  void Write(std::string_view bytes);
  void Resize(int rows, int columns);

  // What the screen shows: lines without spaces at their ends, up to the last one that has
  // something.
  std::string Visible() const;
  // Characters of a row that are beside each other and look alike. A wide character has two
  // columns.
  struct Run {
    int column = 0;
    int columns = 0;
    int color = -1;  // One of a terminal's 16; -1: its own for text, or another.
    bool is_bold = false;
    std::string text;
  };
  // The rows of Visible(). Runs have no spaces at their ends.
  std::vector<std::vector<Run>> VisibleRuns() const;
  // The lines that have scrolled off the screen.
  const std::string& scrolled() const;

  struct Cursor {
    int row = 0;
    int column = 0;
    bool operator==(const Cursor&) const = default;
  };
  Cursor cursor() const;

 private:
  struct Vterm;
  std::unique_ptr<Vterm> vterm_;
};

}  // namespace cria::support
