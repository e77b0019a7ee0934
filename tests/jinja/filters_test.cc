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
  EXPECT_EQ(Print("['aé' | replace('', '-'), 'ab' | replace('', '-', 2), '' | replace('', 'b')]"),
            "['-a-é-', '-a-b', 'b']");
  EXPECT_EQ(Print("[1, 'a'] | safe ~ ('ab' | center(5)) ~ ('abc' | center(6)) ~ '|'"),
            "[1, 'a']  ab  abc  |");
}

TEST(JinjaFiltersTest, CaseBeyondAscii) {
  EXPECT_EQ(Print("'éß Ünder' | upper ~ 'ÉCOLE İ' | lower"), "ÉSS ÜNDERécole i\u0307");
  EXPECT_EQ(Print("'élan vital (été' | title ~ 'éA' | capitalize"), "Élan Vital (ÉtéÉa");
  // A sigma at the end of a word.
  EXPECT_EQ(Print("'ΟΔΥΣΣΕΥΣ, ΑΣ. ΑΣ.Α Σ' | lower"), "οδυσσευς, ας. ασ.α σ");
  EXPECT_EQ(Print("['É', 'e', 'é', 'E'] | sort"), "['e', 'E', 'É', 'é']");
}

TEST(JinjaFiltersTest, Markup) {
  EXPECT_EQ(Print("user | e ~ \"it's \\\"\" | escape"), "&lt;u&gt;Öl&lt;/u&gt;it&#39;s &#34;");
  EXPECT_EQ(Print("['<' | e | e, '<' | e | forceescape]"), "[Markup('&lt;'), Markup('&amp;lt;')]");
  // What is added to markup is escaped, but not what is joined with it by ~.
  EXPECT_EQ(Print("'<' | safe + user + '<'"), "<&lt;u&gt;Öl&lt;/u&gt;&lt;");
  EXPECT_EQ(Print("['<' + '<' | safe, '<' | safe ~ '<']"), "[Markup('&lt;<'), '<<']");
  EXPECT_EQ(Print("['<a>' | safe | upper + '<', '<' | safe | title + '<']"),
            "[Markup('<A>&lt;'), '<<']");
  EXPECT_EQ(Print("('<{}' | safe).format('<')"), "<&lt;");
  EXPECT_EQ(Print("[('<' | safe)[0] + '<', ('<' | safe).strip() + '<']"),
            "[Markup('<&lt;'), Markup('<&lt;')]");
  EXPECT_EQ(Print("[('<' | safe).join(['&', 1]), ['<' | safe, '&'] | join]"),
            "[Markup('&amp;<1'), '<&']");
  EXPECT_EQ(Print("[('a' | safe).replace('a', '<'), '<a' | safe | replace('a', '') + '<']"),
            "[Markup('&lt;'), '<<']");
}

TEST(JinjaFiltersTest, Indent) {
  EXPECT_EQ(Print("'a\nb\n\nc' | indent"), "a\n    b\n\n    c");
  EXPECT_EQ(Print("'a\nb' | indent(1, true)"), " a\n b");
  EXPECT_EQ(Print("'a\n\nb' | indent('> ', blank=true)"), "a\n> \n> b");
  // The last line's end is followed by an empty line.
  EXPECT_EQ(Print("('a\n' | indent(2, blank=true)) ~ '|'"), "a\n  |");
  EXPECT_EQ(Print("('a\n' | indent(2)) ~ '|'"), "a\n|");
  // A line of spaces is not empty; other ends of lines become \n.
  EXPECT_EQ(Print("'a\n \r\nb\u2028c' | indent(1)"), "a\n  \n b\n c");
  EXPECT_EQ(Print("('' | indent(1, true)) ~ ('' | indent(1, blank=true)) ~ '|'"), " |");
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

TEST(JinjaFiltersTest, WholeNumbersOfABase) {
  EXPECT_EQ(
      Print(
          "['ff' | int(0, 16), ' -0xFF ' | int(base=16), '0b11' | int(0, 2), 'z' | int(base=36)]"),
      "[255, -255, 3, 35]");
  EXPECT_EQ(
      Print("['0x1f' | int(7), '0x1f' | int(7, 0), '010' | int(7, 0), '010' | int, '1_000' | int]"),
      "[7, 31, 10, 10, 1000]");
  EXPECT_EQ(
      Print("['1__0' | int(7), '_1' | int(7), '1_' | int(7), '8' | int(7, 8), '1' | int(7, 99)]"),
      "[7, 7, 7, 8, 1]");
  EXPECT_EQ(Print("['-9223372036854775808' | int, '+5' | int, '-' | int(7), '0x' | int(7, 16)]"),
            "[-9223372036854775808, 5, 7, 7]");
  EXPECT_EQ(Print("['inf' | int(7), 'nan' | int(7), '1e3' | int, none | int(7), [] | int('x')]"),
            "[7, 7, 1000, 7, 'x']");
  for (const char* expression : {"'9223372036854775808' | int", "1e20 | int", "'1e20' | int"}) {
    EXPECT_THAT(Print(expression), HasSubstr("a number is too large")) << expression;
  }
}

TEST(JinjaFiltersTest, Rounding) {
  EXPECT_EQ(Print("[2.5 | round, 3.5 | round, -1.25 | round(1), 42.567 | round(2), 7 | round]"),
            "[2.0, 4.0, -1.2, 42.57, 7]");
  EXPECT_EQ(Print("[2.1 | round(method='ceil'), 2.9 | round(0, 'floor'), 1234 | round(-2)]"),
            "[3.0, 2.0, 1200]");
  EXPECT_EQ(Print("[1e300 | round(2), 0.125 | round(2), 1e-30 | round(20), 1.5 | round(20)]"),
            "[1e+300, 0.12, 0.0, 1.5]");
  EXPECT_THAT(Print("1 | round(0, 'up')"), HasSubstr("not by 'up'"));
  EXPECT_THAT(Print("1 | round(10 ** 9)"), HasSubstr("more than 20 digits"));
  EXPECT_THAT(Print("'a' | round"), HasSubstr("str has no sign"));
}

TEST(JinjaFiltersTest, Truncating) {
  EXPECT_EQ(Print("'Hello wonderful world' | truncate(10)"), "Hello...");
  EXPECT_EQ(Print("'Hello wonderful world' | truncate(10, true)"), "Hello w...");
  EXPECT_EQ(Print("'Hello wonderful world' | truncate(10, false, '')"), "Hello");
  EXPECT_EQ(Print("'Hello wonderful world' | truncate(16)"), "Hello wonderful world");
  EXPECT_EQ(Print("'Hello wonderful world' | truncate(16, leeway=0)"), "Hello...");
  EXPECT_EQ(Print("'öööööööööö' | truncate(5, true, '…', 0)"), "öööö…");
  EXPECT_EQ(Print("('a b' * 200) | truncate"), Print("'a b' * 83 ~ 'a...'"));
  EXPECT_THAT(Print("'a' | truncate(2)"), HasSubstr("at least its mark's"));
  EXPECT_THAT(Print("'a' | truncate(5, leeway=-1)"), HasSubstr("no leeway below zero"));
}

TEST(JinjaFiltersTest, Words) {
  EXPECT_EQ(Print("['' | wordcount, ' a  b-c_d\n1' | wordcount, 'Öl — “été”, 日本。' | wordcount]"),
            "[0, 4, 3]");
  EXPECT_EQ(Print("[{'a': 1} | attr('a') is defined, {'a': 1} | attr('items') is callable]"),
            "[False, True]");
}

TEST(JinjaFiltersTest, ArgumentsThatAreNotTheirs) {
  EXPECT_THAT(Print("'a' | replace('a')"), HasSubstr("replace needs the new text"));
  EXPECT_THAT(Print("'a' | trim(1, 2)"), HasSubstr("'trim' is given an argument"));
  EXPECT_THAT(Print("'a' | trim(x='b')"), HasSubstr("'trim' is given an argument"));
  EXPECT_THAT(Print("'a' | upper('b')"), HasSubstr("'upper' is given an argument"));
}

TEST(JinjaFiltersTest, Urls) {
  EXPECT_EQ(Print("'a b/ä' | urlencode ~ '|' ~ {'q': 'a b/'} | urlencode"),
            "a%20b/%C3%A4|q=a+b%2F");
  EXPECT_THAT(Print("[1] | urlencode"), HasSubstr("int cannot be iterated"));
  EXPECT_THAT(Print("['abc'] | urlencode"), HasSubstr("needs pairs"));
}

}  // namespace
}  // namespace cria::jinja
