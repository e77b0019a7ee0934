#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

// For which of some values a test holds.
std::string Holds(const std::string& test) {
  return RenderText(
      "{% for v in [missing, none, true, false, 1, 1.5, 'a', '', [1], (), {}, range] %}"
      "{{ 'UNTFifsqelpd'[loop.index0] if v is " +
      test + " }}{% endfor %}");
}

TEST(JinjaConditionsTest, Kinds) {
  EXPECT_EQ(Holds("defined"), "NTFifsqelpd");
  EXPECT_EQ(Holds("undefined"), "U");
  EXPECT_EQ(Holds("none"), "N");
  EXPECT_EQ(Holds("boolean"), "TF");
  EXPECT_EQ(Holds("true"), "T");
  EXPECT_EQ(Holds("false"), "F");
  EXPECT_EQ(Holds("integer"), "i");
  EXPECT_EQ(Holds("float"), "f");
  EXPECT_EQ(Holds("number"), "TFif");
  EXPECT_EQ(Holds("string"), "sq");
  EXPECT_EQ(Holds("mapping"), "p");
  EXPECT_EQ(Holds("callable"), "Ud");
  EXPECT_EQ(Holds("iterable"), "Usqelp");
  EXPECT_EQ(Holds("sequence"), "Usqelp");
}

TEST(JinjaConditionsTest, Names) {
  EXPECT_EQ(
      Print("['upper' is filter, 'odd' is filter, 'odd' is test, 'odd' is escaped, 1 is test]"),
      "[True, False, True, False, False]");
  EXPECT_EQ(Print("[2.0 is even, 2.5 is odd, 4.5 is divisibleby(1.5)]"), "[True, False, True]");
}

TEST(JinjaConditionsTest, Comparisons) {
  EXPECT_EQ(Print("[1 is eq 1, 1 is ne 1, 1 is lt 2, 1 is le 1, 1 is gt 1, 1 is ge 1]"),
            "[True, False, True, True, False, True]");
  EXPECT_EQ(Print("['a' is equalto 'a', 'a' is in ['a'], 1 is sameas true, none is sameas none]"),
            "[True, True, False, True]");
  EXPECT_EQ(Print("[3 is odd, 3 is even, -1 is odd, 6 is divisibleby 3, 6 is divisibleby(4)]"),
            "[True, False, True, True, False]");
  EXPECT_EQ(Print("['éß' is lower, 'éa' is upper, 'É1' is upper, '日' is lower]"),
            "[True, False, True, False]");
  EXPECT_EQ(Print("['a' is escaped, 'a' | safe is escaped, 1 is escaped]"), "[False, True, False]");
  EXPECT_EQ(Print("['ab' is lower, 'aB' is lower, 'AB' is upper, '1' is upper]"),
            "[True, False, True, False]");
  EXPECT_EQ(Print("1 is not none and 1 is not string"), "True");
  EXPECT_THAT(Print("'a' is odd"), HasSubstr("fewer fields than values"));
}

}  // namespace
}  // namespace cria::jinja
