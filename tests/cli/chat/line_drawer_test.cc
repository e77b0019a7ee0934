#include "cli/chat/line_drawer.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "cli/chat/typed_text.h"
#include "support/terminal_screen.h"

namespace cria::cli {
namespace {

using support::TerminalScreen;
using tests::Expect;
using tests::ExpectedScreen;
using tests::ToUtf8;
using tests::TypedText;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

class LineDrawerTest : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  LineDrawerTest() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

  void Draw(const std::wstring& text, size_t cursor) {
    screen_.Write(ToUtf8(drawer_.Draw(text, cursor, size_)));
  }
  // The screen has the rows of the text that fit on it, and the cursor where it belongs.
  void ExpectDrawn(const std::wstring& text, size_t cursor) {
    const ExpectedScreen expected = Expect(text, cursor, size_.columns);
    const TerminalScreen::Cursor shown = screen_.cursor();
    const auto height = static_cast<size_t>(size_.rows);
    const int first = expected.cursor.row - shown.row + first_screen_row_;
    ASSERT_GE(first, 0) << ToUtf8(text);
    ASSERT_EQ(shown.column, expected.cursor.column) << ToUtf8(text);
    std::vector<std::string> rows = Lines(screen_.Visible());
    rows.erase(rows.begin(),
               rows.begin() + std::min<std::ptrdiff_t>(first_screen_row_, std::ssize(rows)));
    std::vector<std::string> wanted(expected.rows.begin() + first, expected.rows.end());
    if (wanted.size() > height) wanted.resize(height);
    rows.resize(std::max(rows.size(), wanted.size()));
    ASSERT_EQ(rows, wanted) << "cursor " << cursor << " of " << ToUtf8(text);
    EXPECT_TRUE(first == 0 || wanted.size() == height);
  }

  ScreenSize size_ = {.rows = std::get<0>(GetParam()), .columns = std::get<1>(GetParam())};
  TerminalScreen screen_{size_.rows, size_.columns};
  LineDrawer drawer_;
  int first_screen_row_ = 0;
};

TEST_P(LineDrawerTest, RandomChangesAreShownAsAWholeTextIs) {
  TypedText typed(1);
  for (int step = 0; step < 4000; ++step) {
    const size_t size = typed.text.size();
    switch (typed.Below(12)) {
      case 0:
        typed.cursor = typed.Below(2) == 0 ? 0 : size;
        break;
      case 1:
      case 2:
        typed.cursor = typed.Below(size + 1);
        break;
      case 3:
        typed.Insert(typed.Below(2) == 0 ? L"\n" : L"\t");
        break;
      case 4:
      case 5:
      case 6:
        if (typed.cursor < size) typed.Remove(typed.cursor);
        break;
      case 7:
        if (typed.Below(4) == 0) typed.text.resize(typed.cursor);
        break;
      default:
        if (size < static_cast<size_t>(5 * size_.columns)) typed.Insert(typed.Characters());
    }
    Draw(L"> " + typed.text, typed.cursor + 2);
    ASSERT_NO_FATAL_FAILURE(ExpectDrawn(L"> " + typed.text, typed.cursor + 2)) << "step " << step;
  }
}

TEST_P(LineDrawerTest, AChangeOfTheSizeLeavesNothingBehind) {
  TypedText typed(2);
  for (int step = 0; step < 300; ++step) {
    if (step % 10 == 0) {
      screen_.Write("\033[H\033[2J");
      drawer_.Begin();
      typed.text = L"> ";
    }
    typed.cursor = typed.text.size();
    // Terminals differ in where they wrap wide characters again.
    const std::wstring characters = typed.Characters();
    typed.Insert(characters.find_first_of(tests::kWideCharacters) == characters.npos ? characters
                                                                                     : L"word\n");
    if (Expect(typed.text, 0, 20).rows.size() > 20) typed.text = L"> ";
    typed.cursor = typed.text.size();
    Draw(typed.text, typed.cursor);
    size_.columns = static_cast<int>(20 + typed.Below(60));
    size_.rows = 24;
    screen_.Resize(size_.rows, size_.columns);
    screen_.Write(ToUtf8(drawer_.Erase(size_.columns)));
    Draw(typed.text, typed.cursor);
    ASSERT_NO_FATAL_FAILURE(ExpectDrawn(typed.text, typed.cursor)) << "step " << step;
  }
}

TEST_P(LineDrawerTest, AFinishedTextIsWholeEvenIfItIsHigherThanTheScreen) {
  std::wstring text = L"> ";
  std::string wanted = ">";
  for (int i = 0; i < 2 * size_.rows; ++i) {
    text += L"\nrow " + std::to_wstring(i);
    wanted += "\nrow " + std::to_string(i);
  }
  Draw(text, 0);
  Draw(text, text.size());
  Draw(text, 5);
  screen_.Write(ToUtf8(drawer_.Finish(text, size_)));
  const std::string all = screen_.scrolled() + screen_.Visible();
  EXPECT_TRUE(all.ends_with(wanted + "\n")) << all;
  EXPECT_EQ(screen_.cursor(), (TerminalScreen::Cursor{size_.rows - 1, 0}));
  first_screen_row_ = size_.rows - 1;
  Draw(L"> next", 6);
  EXPECT_EQ(screen_.cursor(), (TerminalScreen::Cursor{size_.rows - 1, 6}));
  EXPECT_TRUE(screen_.Visible().ends_with("\n> next\n"));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LineDrawerTest,
                         testing::Values(std::tuple(24, 40), std::tuple(24, 80), std::tuple(4, 40),
                                         std::tuple(3, 11)));

TEST(LineDrawer, AKeyAtTheEndDrawsItsCharacterAlone) {
  LineDrawer drawer;
  const ScreenSize size = {.rows = 24, .columns = 80};
  EXPECT_EQ(drawer.Draw(L"> ab", 4, size), L"\r\033[J> ab");
  EXPECT_EQ(drawer.Draw(L"> abc", 5, size), L"c");
  EXPECT_EQ(drawer.Draw(L"> abc", 5, size), L"");
  EXPECT_EQ(drawer.Draw(L"> ab", 4, size), L"\r\033[4C\033[J");
}

TEST(LineDrawer, WhatATerminalCannotShowIsVisible) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  LineDrawer drawer;
  EXPECT_EQ(drawer.Draw(L"> \033[2J\u0085\n\u0301x", 0, {.rows = 24, .columns = 80}),
            L"\r\033[J> ^[[2J\uFFFD\r\n\u25CC\u0301x\033[1A\r");
}

TEST(LineDrawer, AScreenOfNoSizeEndsNothing) {
  LineDrawer drawer;
  EXPECT_FALSE(drawer.Draw(L"> \u4f60a\n", 2, {}).empty());
  drawer.Erase(0);
  EXPECT_FALSE(drawer.Finish(L"> \u4f60a\n", {}).empty());
}

}  // namespace
}  // namespace cria::cli
