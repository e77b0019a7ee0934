#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaFiltersTest, Strings) {
  EXPECT_EQ(Print("'\u3000 a b\n' | trim"), "a b");
  EXPECT_EQ(Print("'xxaxx' | trim('x')"), "a");
  EXPECT_EQ(Print("'aBc' | upper ~ 'aBc' | lower ~ 'aBc d' | title ~ 'aBc' | capitalize"),
            "ABCabcAbc DAbc");
  EXPECT_EQ(Print("'it\\'s (a) b-c' | title ~ 'it\\'s (a) b-c'.title()"),
            "It's (A) B-CIt'S (A) B-C");
  EXPECT_EQ(Print("'a-b-c' | replace('-', '+')"), "a+b+c");
  EXPECT_EQ(Print("'a-b-c' | replace('-', '', 1)"), "ab-c");
  EXPECT_EQ(Print("[1 | string ~ '', none | upper, missing | trim]"), "['1', 'NONE', '']");
  EXPECT_THAT(Print("'a' | replace('', 'b')"), HasSubstr("the empty string is not supported"));
}

TEST(JinjaFiltersTest, Indent) {
  EXPECT_EQ(Print("'a\nb\n\nc' | indent"), "a\n    b\n\n    c");
  EXPECT_EQ(Print("'a\nb' | indent(1, true)"), " a\n b");
  EXPECT_EQ(Print("'a\n\nb' | indent('> ', blank=true)"), "a\n> \n> b");
}

TEST(JinjaFiltersTest, Length) {
  EXPECT_EQ(Print("[user | length, words | count, messages[0] | length, missing | length]"),
            "[9, 3, 2, 0]");
  EXPECT_THAT(Print("none | length"), HasSubstr("NoneType has no length"));
}

TEST(JinjaFiltersTest, Default) {
  EXPECT_EQ(Print("missing | default('d') ~ empty | default('d') ~ empty | d('e', true)"), "de");
  EXPECT_EQ(Print("nothing | default('d')"), "None");
  EXPECT_EQ(Print("missing | default"), "");
}

TEST(JinjaFiltersTest, Numbers) {
  EXPECT_EQ(Print("['42' | int, ' 4.9 ' | int, 'x' | int, 'x' | int(7), 3.9 | int, true | int]"),
            "[42, 4, 0, 7, 3, 1]");
  EXPECT_EQ(Print("['2.5' | float, 'x' | float, 1 | float, -2 | abs]"), "[2.5, 0.0, 1.0, 2]");
  EXPECT_EQ(Print("[' -2e3\\n' | float, '1e999' | float, '+.5' | float, 'inf' | float]"),
            "[-2000.0, inf, 0.5, inf]");
  EXPECT_EQ(Print("['' | float, '0x10' | float, '1,5' | float, '1 2' | float, 'nan(1)' | float]"),
            "[0.0, 0.0, 0.0, 0.0, 0.0]");
}

TEST(JinjaFiltersTest, ArgumentsThatAreNotTheirs) {
  EXPECT_THAT(Print("'a' | replace('a')"), HasSubstr("replace needs the new text"));
  EXPECT_THAT(Print("'a' | trim(1, 2)"), HasSubstr("'trim' is given an argument"));
  EXPECT_THAT(Print("'a' | trim(x='b')"), HasSubstr("'trim' is given an argument"));
  EXPECT_THAT(Print("'a' | upper('b')"), HasSubstr("'upper' is given an argument"));
}

}  // namespace
}  // namespace cria::jinja
