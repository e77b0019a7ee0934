#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cria::cli {

struct ScreenSize {
  int rows = 0;
  int columns = 0;
};

// Draws a text that is being typed on a terminal that knows xterm's sequences: rows that are full
// are continued on the next one, and after each change only what follows it is drawn again.
// Characters are as wide as wcwidth says. Of a text that is higher than the screen, the rows around
// the cursor are drawn.
class LineDrawer {
 public:
  // What to write, so that the terminal shows the text and has its cursor before the character
  // `cursor`. The first row is the one on which the terminal's cursor is when drawing begins.
  std::wstring Draw(std::wstring_view text, size_t cursor, ScreenSize size);
  // What to write after a change of the terminal's size, before the text is drawn again. The
  // terminal has wrapped the rows to its new width.
  std::wstring Erase(int columns);
  // Draws the whole text with its end, and moves to the row after it. Then begins anew.
  std::wstring Finish(std::wstring_view text, ScreenSize size);
  // Begins anew: the next text is drawn on the row that then has the cursor.
  void Begin() { *this = {}; }

 private:
  struct Row {
    std::wstring characters;  // None of them is a control character.
    bool ends_line = false;   // If not, the row is full, and the next one continues it.
    bool operator==(const Row&) const = default;
  };
  struct Position {
    int row = 0;
    int column = 0;
    bool operator==(const Position&) const = default;
  };
  class Layout;

  std::wstring MoveTo(Position to);
  std::wstring DrawRows(std::vector<Row> rows);

  std::vector<Row> rows_;  // What the screen shows.
  Position position_;      // Where the terminal's cursor is.
  size_t first_row_ = 0;   // Where the text begins on the screen.
  bool is_begun_ = false;
};

}  // namespace cria::cli
