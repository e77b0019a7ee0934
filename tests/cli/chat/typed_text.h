#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/terminal_screen.h"

namespace cria::tests {

// What the screen must show of a text that is typed, computed in the simplest way.
struct ExpectedScreen {
  std::vector<std::string> rows;  // Without spaces at their ends.
  support::TerminalScreen::Cursor cursor;
};

inline constexpr wchar_t kMark = L'\u0301';
inline constexpr std::wstring_view kWideCharacters =
    L"\u4f60\u597d\u4e16\u754c\uAC00\u3042\U0001F600\U0001F44D";

// UTF-8, whatever the locale is.
inline std::string ToUtf8(std::wstring_view text) {
  std::string utf8;
  for (const wchar_t wide : text) {
    const auto code = static_cast<uint32_t>(wide);
    if (code < 0x80) {
      utf8 += static_cast<char>(code);
      continue;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
    utf8 += static_cast<char>(kLead[more] | (code >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) {
      utf8 += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
    }
  }
  return utf8;
}

inline ExpectedScreen Expect(std::wstring_view text, size_t cursor, int columns) {
  ExpectedScreen expected;
  std::vector<std::wstring> rows = {L""};
  int column = 0;
  const auto begin_row = [&] {
    rows.emplace_back();
    column = 0;
  };
  const auto note_cursor = [&](size_t index) {
    if (index != cursor) return;
    expected.cursor = {.row = static_cast<int>(rows.size()) - 1,
                       .column = std::min(column, columns - 1)};
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const int width = text[i] == kMark ? 0 : kWideCharacters.contains(text[i]) ? 2 : 1;
    if (column + width > columns) begin_row();
    note_cursor(i);
    if (text[i] == kMark && rows.back().empty()) {
      rows.back() = {L'\u25CC', kMark};
      column = 1;
    } else if (text[i] == L'\n') {
      begin_row();
    } else if (text[i] == L'\t') {
      const int end = std::min((column / 8 + 1) * 8, columns);
      rows.back().append(static_cast<size_t>(end - column), L' ');
      column = end;
    } else {
      rows.back() += text[i];
      column += width;
    }
  }
  if (column == columns) begin_row();
  note_cursor(text.size());
  for (std::wstring& row : rows) {
    row.resize(row.find_last_not_of(L' ') + 1);
    expected.rows.push_back(ToUtf8(row));
  }
  return expected;
}

// A text in which random keys have been pressed.
class TypedText {
 public:
  explicit TypedText(unsigned seed) : random_(seed) {}

  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }

  // Some characters of one kind, of which several kinds are wide. Marks follow a letter.
  std::wstring Characters() {
    std::wstring characters;
    const size_t kind = Below(8);
    for (size_t count = Below(Below(4) == 0 ? 30 : 3) + 1; count > 0; --count) {
      if (kind < 3) {
        characters += kWideCharacters[Below(kWideCharacters.size())];
      } else if (kind == 3) {
        characters += {static_cast<wchar_t>(L'a' + Below(26)), kMark};
      } else {
        characters += Below(5) == 0 ? L' ' : static_cast<wchar_t>(L'a' + Below(26));
      }
    }
    return characters;
  }
  void Insert(std::wstring_view characters) {
    text.insert(cursor, characters);
    cursor += characters.size();
  }
  // Removes a character and the marks that belong to it.
  size_t Remove(size_t at) {
    size_t end = at + 1;
    while (end < text.size() && text[end] == kMark) ++end;
    text.erase(at, end - at);
    return end - at;
  }

  std::wstring text;
  size_t cursor = 0;

 private:
  std::mt19937 random_;
};

}  // namespace cria::tests
