#include "cli/chat/wrapped_rows.h"

#include <algorithm>
#include <cwchar>

namespace cria::cli {
namespace {

constexpr int kTab = 8;

int WidthOf(wchar_t character, int column) {
  return character == L'\t' ? kTab - column % kTab : std::max(wcwidth(character), 0);
}

}  // namespace

int RowAfterResize(std::wstring_view text, int columns_before, int columns) {
  if (columns_before <= 0 || columns <= 0) return 0;
  int row = 0;
  int line_columns = 0;   // Of the line as the terminal has it, from its beginning.
  int column_before = 0;  // On the row before the terminal was resized.
  int trailing_spaces = 0;
  const auto end_line = [&] {
    row += std::max(line_columns - 1, 0) / columns + 1;
    line_columns = column_before = trailing_spaces = 0;
  };
  for (const wchar_t character : text) {
    if (character == L'\n') {
      line_columns -= trailing_spaces;
      end_line();
      continue;
    }
    const int width = WidthOf(character, column_before);
    if (column_before + width > columns_before) {
      if (trailing_spaces > 0) {
        line_columns -= trailing_spaces;
        end_line();
      }
      column_before = 0;
    }
    column_before += width;
    line_columns += width;
    trailing_spaces = character == L' ' ? trailing_spaces + 1 : 0;
  }
  return row + line_columns / columns;
}

}  // namespace cria::cli
