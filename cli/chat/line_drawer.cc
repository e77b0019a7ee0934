#include "cli/chat/line_drawer.h"

#include <algorithm>
#include <cwchar>
#include <utility>

namespace cria::cli {
namespace {

constexpr int kTabStop = 8;
constexpr wchar_t kReplacement = L'\uFFFD';
constexpr wchar_t kDottedCircle = L'\u25CC';  // Shown below a mark that has no character.

int WidthOf(wchar_t character) { return std::max(wcwidth(character), 0); }

int WidthOf(std::wstring_view characters) {
  int width = 0;
  for (const wchar_t character : characters) width += WidthOf(character);
  return width;
}

// The number of characters with which both begin and which need not be drawn again. A mark is drawn
// with the character to which it belongs.
size_t CommonCharacters(std::wstring_view a, std::wstring_view b) {
  auto count = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const auto is_mark = [&](std::wstring_view text) {
    return count < text.size() && WidthOf(text[count]) == 0;
  };
  while (count > 0 && (is_mark(a) || is_mark(b))) --count;
  return count;
}

}  // namespace

// A text divided into rows, the last of which has a column for the cursor behind the text.
class LineDrawer::Layout {
 public:
  Layout(std::wstring_view text, size_t cursor_index, int columns) : columns_(columns) {
    for (size_t i = 0; i < text.size(); ++i) {
      is_at_cursor_ = i == cursor_index;
      Add(text[i]);
    }
    is_at_cursor_ = text.size() <= cursor_index;
    if (column_ >= columns_) BeginRow();
    NoteCursor();
  }

  std::vector<Row> rows = {{}};
  Position cursor;

 private:
  void BeginRow() {
    rows.emplace_back();
    column_ = 0;
  }
  void NoteCursor() {
    if (!std::exchange(is_at_cursor_, false)) return;
    cursor = {.row = static_cast<int>(rows.size()) - 1, .column = std::min(column_, columns_ - 1)};
  }
  void Put(wchar_t character, int width) {
    if (column_ + width > columns_ && column_ > 0) {
      // A terminal may put a half of a wide character at the end of a row.
      if (column_ < columns_) rows.back().characters += L' ';
      BeginRow();
    }
    NoteCursor();
    rows.back().characters += character;
    column_ += width;
  }
  void Add(wchar_t character) {
    if (character == L'\n') {
      if (column_ >= columns_) BeginRow();  // The cursor can be before the line feed.
      NoteCursor();
      rows.back().ends_line = true;
      BeginRow();
    } else if (character == L'\t') {
      do Put(L' ', 1);
      while (column_ % kTabStop != 0 && column_ < columns_);
    } else if (const int width = wcwidth(character); width >= 0) {
      if (width == 0 && rows.back().characters.empty()) Put(kDottedCircle, 1);
      Put(character, width);
    } else if (character < L' ' || character == 0x7F) {
      Put(L'^', 1);
      Put(character ^ 0x40, 1);
    } else {
      Put(kReplacement, 1);
    }
  }

  int columns_;
  int column_ = 0;
  bool is_at_cursor_ = false;  // The next character that is put has the cursor.
};

std::wstring LineDrawer::MoveTo(Position to) {
  if (to == position_) return L"";
  std::wstring keys;
  const int down = to.row - position_.row;
  if (down < 0) keys += L"\033[" + std::to_wstring(-down) + L'A';
  if (down > 0) keys += L"\033[" + std::to_wstring(down) + L'B';
  // Relative moves from the last column differ between terminals.
  keys += L'\r';
  if (to.column > 0) keys += L"\033[" + std::to_wstring(to.column) + L'C';
  position_ = to;
  return keys;
}

// Leaves the cursor behind the last row.
std::wstring LineDrawer::DrawRows(std::vector<Row> rows) {
  std::wstring keys;
  if (!std::exchange(is_begun_, true)) {
    keys = L"\r\033[J";
    rows_ = {{}};
    position_ = {};
  }
  if (rows == rows_) return keys;
  const auto changed = std::ranges::mismatch(rows_, rows).in1 - rows_.begin();
  size_t row = std::min({static_cast<size_t>(changed), rows_.size() - 1, rows.size() - 1});
  const std::wstring& before = rows_[row].characters;
  const std::wstring& after = rows[row].characters;
  const size_t same = CommonCharacters(before, after);
  keys += MoveTo(
      {.row = static_cast<int>(row), .column = WidthOf(std::wstring_view(after).substr(0, same))});
  if (same < before.size() || row + 1 < rows_.size()) keys += L"\033[J";
  keys += after.substr(same);
  for (++row; row < rows.size(); ++row) {
    if (rows[row - 1].ends_line) {
      keys += L"\r\n";
    } else if (rows[row].characters.empty()) {
      keys += L" \r";  // The terminal begins the next row only for a character.
    }
    keys += rows[row].characters;
  }
  rows_ = std::move(rows);
  position_ = {.row = static_cast<int>(rows_.size()) - 1,
               .column = WidthOf(rows_.back().characters)};
  return keys;
}

std::wstring LineDrawer::Draw(std::wstring_view text, size_t cursor, ScreenSize size) {
  const size_t height = static_cast<size_t>(std::max(size.rows, 1));
  Layout layout(text, cursor, std::max(size.columns, 1));
  std::vector<Row>& rows = layout.rows;
  const auto cursor_row = static_cast<size_t>(layout.cursor.row);
  const size_t last_first_row = rows.size() - std::min(rows.size(), height);
  const size_t first_row_with_cursor = cursor_row - std::min(cursor_row, height - 1);
  first_row_ = std::clamp(first_row_, first_row_with_cursor, std::min(cursor_row, last_first_row));
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(first_row_));
  rows.resize(std::min(rows.size(), height));
  std::wstring keys = DrawRows(std::move(rows));
  return keys +
         MoveTo({.row = static_cast<int>(cursor_row - first_row_), .column = layout.cursor.column});
}

std::wstring LineDrawer::Erase(int columns) {
  int row = 0;
  int column = 0;
  for (int before = 0; before <= position_.row; ++before) {
    const Row& drawn = rows_[static_cast<size_t>(before)];
    int column_before = 0;
    for (const wchar_t character : drawn.characters) {
      if (before == position_.row && column_before >= position_.column) break;
      const int width = WidthOf(character);
      column_before += width;
      if (column + width > columns) {
        ++row;
        column = 0;
      }
      column += width;
    }
    if (before < position_.row && drawn.ends_line) {
      ++row;
      column = 0;
    }
  }
  if (column >= columns) ++row;
  Begin();
  return row == 0 ? L"" : L"\033[" + std::to_wstring(row) + L'A';
}

std::wstring LineDrawer::Finish(std::wstring_view text, ScreenSize size) {
  Layout layout(text, text.size(), std::max(size.columns, 1));
  std::wstring keys;
  if (std::cmp_greater(layout.rows.size(), size.rows)) {
    // Rows that were not on the screen are drawn, too.
    keys = MoveTo({});
    Begin();
  }
  keys += DrawRows(std::move(layout.rows));
  keys += MoveTo(layout.cursor) + L"\r\n";
  Begin();
  return keys;
}

}  // namespace cria::cli
