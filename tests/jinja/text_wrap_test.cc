#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaWordWrapTest, BreaksBetweenWords) {
  EXPECT_EQ(Print("'The quick brown fox\n\nand another' | wordwrap(10)"),
            "The quick\nbrown fox\n\nand\nanother");
  EXPECT_EQ(Print("'ab  cd ' | wordwrap(3, wrapstring='|')"), "ab|cd");
  EXPECT_EQ(Print("'é日 é日' | wordwrap(2)"), "é日\né日");
  EXPECT_EQ(Print("'a b' | wordwrap"), "a b");
}

TEST(JinjaWordWrapTest, LongWordsAndHyphens) {
  EXPECT_EQ(Print("'abcdef g' | wordwrap(4, wrapstring='|')"), "abcd|ef g");
  EXPECT_EQ(Print("'abcdef g' | wordwrap(4, false, '|')"), "abcdef|g");
  EXPECT_EQ(Print("'well-known yes--no' | wordwrap(6, wrapstring='|')"), "well-|known|yes--|no");
  EXPECT_EQ(Print("'well-known' | wordwrap(6, true, '|', false)"), "well-k|nown");
}

TEST(JinjaWordWrapTest, Markup) {
  EXPECT_EQ(Print("('<a b>' | safe | wordwrap(2)) | escape"), "&lt;a\nb&gt;");
  EXPECT_EQ(Print("'<a b' | wordwrap(2, wrapstring='<br>' | safe)"), "&lt;a<br>b");
}

TEST(JinjaWordWrapTest, WhatIsWrong) {
  EXPECT_THAT(Print("'a' | wordwrap(0)"), HasSubstr("a width of no characters"));
  EXPECT_THAT(Print("'a' | wordwrap('x')"), HasSubstr("must be a whole number"));
  EXPECT_THAT(Print("'a b' | wordwrap(1, wrapstring=5)"), HasSubstr("does not join lines"));
  EXPECT_THAT(Print("5 | wordwrap"), HasSubstr("has no lines"));
}

}  // namespace
}  // namespace cria::jinja
