#include "jinja/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaOperatorsTest, DivisionRoundsDown) {
  EXPECT_EQ(Print("[7 // 2, -7 // 2, 7 // -2, -8 // 2]"), "[3, -4, -4, -4]");
  EXPECT_EQ(Print("[7 % 3, -7 % 3, 7 % -3, -6 % 3]"), "[1, 2, -2, 0]");
  EXPECT_EQ(Print("[6 / 2, 7.5 // 2, -7.5 % 2]"), "[3.0, 3.0, 0.5]");
  EXPECT_EQ(Print("-9223372036854775807 // -1"), "9223372036854775807");
}

TEST(JinjaOperatorsTest, DivisionOfRealNumbersIsPythons) {
  EXPECT_EQ(Print("[5.3 % 0.1, 5.3 // 0.1, 1.0 // 0.1, 1e20 % 3]"),
            "[0.09999999999999953, 52.0, 9.0, 1.0]");
  EXPECT_EQ(Print("[-0.5 // 2, -0.5 // -2, 0.5 // -2, 0.0 // -1, 4.0 % -2, -4.0 % 2]"),
            "[-1.0, 0.0, -1.0, -0.0, -0.0, 0.0]");
  EXPECT_EQ(Print("[1e400 % 2, -(1e400 - 1e400), 3.0 % 1e400, -3.0 % 1e400]"),
            "[nan, nan, 3.0, inf]");
}

TEST(JinjaOperatorsTest, NumbersDoNotWrapAround) {
  for (const char* expression :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "4294967296 * 4294967296", "2 ** 63",
        "-(-9223372036854775807 - 1)", "(-9223372036854775807 - 1) // -1"}) {
    EXPECT_THAT(Print(expression), HasSubstr("a number is too large")) << expression;
  }
  EXPECT_EQ(Print("(-9223372036854775807 - 1) % -1"), "0");
  for (const char* expression : {"1 / 0", "1 // 0", "1 % 0", "1.0 / 0", "1 % 0.0"}) {
    EXPECT_THAT(Print(expression), HasSubstr("division by zero")) << expression;
  }
}

TEST(JinjaOperatorsTest, StringsAndLists) {
  EXPECT_EQ(Print("'a' + 'b'"), "ab");
  EXPECT_EQ(Print("'ab' * 2"), "abab");
  EXPECT_EQ(Print("[1] + [2] * 2"), "[1, 2, 2]");
  EXPECT_EQ(Print("['ab' * true, [1] * false]"), "['ab', []]");
  EXPECT_EQ(Print("'a' * -1"), "");
  EXPECT_EQ(Print("1 ~ 'a' ~ none ~ missing"), "1aNone");
  EXPECT_THAT(Print("'a' + 1"), HasSubstr("'+' is not possible with values of type str and int"));
  EXPECT_THAT(Print("missing + 1"), HasSubstr("'missing' is undefined"));
}

TEST(JinjaOperatorsTest, Comparisons) {
  EXPECT_EQ(Print("1 == 1.0 and true == 1 and 'a' == 'a'"), "True");
  EXPECT_EQ(Print("[1, [2]] == [1, [2]] and {'a': 1, 'b': 2} == {'b': 2, 'a': 1}"), "True");
  EXPECT_EQ(Print("[1] == (1,) or 'a' == 1 or none == false"), "False");
  EXPECT_EQ(Print("1 < 2 < 3 and not 1 < 3 < 2"), "True");
  EXPECT_EQ(Print("'a' < 'b' and [1, 2] < [1, 3] and 'é' > 'z'"), "True");
  EXPECT_THAT(Print("1 < 'a'"), HasSubstr("'<' is not possible with"));
}

TEST(JinjaOperatorsTest, Containment) {
  EXPECT_EQ(Print("'b' in 'abc' and 2 in [1, 2] and 'role' in messages[0]"), "True");
  EXPECT_EQ(Print("'x' in missing"), "False");
  EXPECT_THAT(Print("1 in 5"), HasSubstr("'in' is not possible with"));
}

TEST(JinjaOperatorsTest, Slices) {
  EXPECT_EQ(Print("words[1:]"), "['a', 'C']");
  EXPECT_EQ(Print("words[::-1]"), "['C', 'a', 'b']");
  EXPECT_EQ(Print("words[-2:]"), "['a', 'C']");
  EXPECT_EQ(Print("words[5:]"), "[]");
  EXPECT_EQ(Print("user[3:5]"), "\u00d6l");
  EXPECT_EQ(Print("user[::-1]"), ">u/<l\u00d6>u<");
  EXPECT_EQ(Print("user[::9223372036854775807]"), "<");
  EXPECT_THAT(Print("words[::0]"), HasSubstr("the step of a slice is zero"));
  EXPECT_THAT(Print("1[1:]"), HasSubstr("cannot be sliced"));
}

TEST(JinjaOperatorsTest, ItemsAndAttributes) {
  EXPECT_EQ(Print("[words[0], words[-1], user[3], messages.1.role]"),
            "['b', 'C', '\u00d6', 'assistant']");
  EXPECT_EQ(Print("words[7] is defined or user[99] is defined or nothing.x is defined"), "False");
  EXPECT_EQ(Print("{'items': 1}['items'] ~ {'a': 2}.a"), "12");
  EXPECT_THAT(Print("missing.x"), HasSubstr("'missing' is undefined, so it has no 'x'"));
  EXPECT_THAT(Print("messages[0].x.y"), HasSubstr("'x' is undefined"));
}

}  // namespace
}  // namespace cria::jinja
