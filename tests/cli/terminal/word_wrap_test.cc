#include "cli/terminal/word_wrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <random>
#include <string>

#include "support/terminal_screen.h"

namespace cria::cli {
namespace {

class WordWrapTest : public testing::Test {
 protected:
  WordWrapTest() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

  // What is written of the text if it comes in parts of this size.
  std::string Wrap(const std::string& text, size_t part = 1) {
    written_.clear();
    for (size_t at = 0; at < text.size(); at += part) wrap_.Append(text.substr(at, part));
    wrap_.Finish();
    return written_;
  }

  size_t columns_ = 10;
  std::string written_;
  WordWrap wrap_{[this] { return columns_; }, [this](std::string_view text) { written_ += text; }};
};

TEST_F(WordWrapTest, AWordThatDoesNotFitBeginsARow) {
  for (const size_t part : {1, 2, 3, 7, 100}) {
    EXPECT_EQ(Wrap("one two three four", part), "one two\nthree four");
    EXPECT_EQ(Wrap("123456789 1", part), "123456789\n1");
    EXPECT_EQ(Wrap("1234567890 1", part), "1234567890\n1");
    EXPECT_EQ(Wrap("12345678 1", part), "12345678 1");
    EXPECT_EQ(Wrap("one\ntwo\n\nthree four five", part), "one\ntwo\n\nthree four\nfive");
    EXPECT_EQ(Wrap("one two   three", part), "one two\nthree");
  }
}

TEST_F(WordWrapTest, ALongWordIsLeftToTheTerminal) {
  EXPECT_EQ(Wrap("a 12345678901234567890123 b c d"), "a\n12345678901234567890123 b c d");
  EXPECT_EQ(Wrap("12345678901234567 b c"), "12345678901234567 b\nc");
}

TEST_F(WordWrapTest, BlanksAtTheEndOfALineTakeNoRow) {
  EXPECT_EQ(Wrap("12345678      \na"), "12345678  \na");
  EXPECT_EQ(Wrap("1234567890  "), "1234567890");
  EXPECT_EQ(Wrap("  12345678 1"), "  12345678\n1");
}

TEST_F(WordWrapTest, WideCharactersMayBeginAnyRow) {
  EXPECT_EQ(Wrap("\u4f60\u597d\u4f60\u597d\u4f60\u597d ab"),
            "\u4f60\u597d\u4f60\u597d\u4f60\u597d ab");
  EXPECT_EQ(Wrap("a \u4f60\u597d\u4f60\u597d bc"), "a \u4f60\u597d\u4f60\u597d\nbc");
  EXPECT_EQ(Wrap("123456789 \u4f60"), "123456789\n\u4f60");
  // The second character does not fit in the last column.
  EXPECT_EQ(Wrap("1234567\u4f60\u597d 12345 1"), "1234567\u4f60\u597d 12345 1");
  EXPECT_EQ(Wrap("1234567\u4f60\u597d 123456789"), "1234567\u4f60\u597d\n123456789");
}

TEST_F(WordWrapTest, MarksTakeNoColumn) {
  EXPECT_EQ(Wrap("e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301e\u0301 a"),
            "e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301e\u0301\na");
}

TEST_F(WordWrapTest, PreformattedLinesStayAsTheyAre) {
  const std::string code = "```c\nint main() { return 0; }\n  ~~~\n```\n";
  EXPECT_EQ(Wrap(code + "one two three"), code + "one two\nthree");
  const std::string other = "~~~\nsome words of code\n``` more words\n~~~\n";
  EXPECT_EQ(Wrap(other + "one two three"), other + "one two\nthree");
  EXPECT_EQ(Wrap("    some words of code\n\tmore of it\n| a | table | row |\n"),
            "    some words of code\n\tmore of it\n| a | table | row |\n");
  // Neither an item of a list nor code in a sentence is preformatted.
  EXPECT_EQ(Wrap("    - one two three"), "    - one\ntwo three");
  EXPECT_EQ(Wrap("```a``` b c d\none two three"), "```a``` b\nc d\none two\nthree");
}

TEST_F(WordWrapTest, OnlyAWordIsHeldBack) {
  wrap_.Append("one tw");
  EXPECT_EQ(written_, "one");
  wrap_.Append("o ");
  EXPECT_EQ(written_, "one two");
  wrap_.Append("th");
  EXPECT_EQ(written_, "one two");
  wrap_.Append("re");  // The word does not fit this row, wherever it ends.
  EXPECT_EQ(written_, "one two\nthr");
  wrap_.Append("\xE4\xBD");
  EXPECT_EQ(written_, "one two\nthr");
  wrap_.Append("\xA0");
  EXPECT_EQ(written_, "one two\nthre\u4f60");
}

TEST_F(WordWrapTest, NothingIsLostAndWithoutAWidthNothingChanges) {
  const std::string text = "one \xFF two\xE4\xBD three \x80";
  columns_ = 80;
  EXPECT_EQ(Wrap(text + "\xE4"), text + "\xE4");
  columns_ = 0;
  EXPECT_EQ(Wrap(text + " one two three four"), text + " one two three four");
}

TEST_F(WordWrapTest, ANewWidthHoldsFromTheNextPartOn) {
  wrap_.Append("one two ");
  columns_ = 20;
  wrap_.Append("three four five ");
  columns_ = 0;
  wrap_.Append("six");
  EXPECT_EQ(written_, "one two three four\nfive six");
}

// On the screen, no word is broken that is shorter than a row.
TEST_F(WordWrapTest, RandomTextsHaveWholeWordsOnTheScreen) {
  std::mt19937 random(3);
  const auto below = [&](size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    columns_ = 10 + below(30);
    std::string text;
    std::string words;  // Separated by single line feeds.
    for (size_t count = 1 + below(30); count > 0; --count) {
      std::string word(1 + below(9), static_cast<char>('a' + below(26)));
      if (below(4) == 0) word = "\u4f60";
      words += word + '\n';
      text += word + (below(8) == 0 ? "\n" : std::string(1 + below(2), ' '));
    }
    support::TerminalScreen screen(40, static_cast<int>(columns_));
    for (const char c : Wrap(text, 1 + below(9))) {
      screen.Write(c == '\n' ? "\r\n" : std::string(1, c));
    }
    std::string shown = screen.scrolled() + screen.Visible();
    std::ranges::replace(shown, ' ', '\n');
    const auto [first, last] =
        std::ranges::unique(shown, [](char a, char b) { return a == '\n' && b == '\n'; });
    shown.erase(first, last);
    EXPECT_EQ(shown, words) << columns_;
  }
}

}  // namespace
}  // namespace cria::cli
