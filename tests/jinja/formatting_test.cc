#include "jinja/formatting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaFormattingTest, FieldsInBraces) {
  EXPECT_EQ(Print("'{} {} {}'.format(1, user, none)"), "1 <u>Öl</u> None");
  EXPECT_EQ(Print("'{1}{0}{a}{{}}'.format('x', 'y', a=1.0)"), "yx1.0{}");
  EXPECT_EQ(Print("['<|bos{}|>'.format(':x'), ''.format()]"), "['<|bos:x|>', '']");
}

TEST(JinjaFormattingTest, FieldsInBracesHaveAWidthAndAKind) {
  EXPECT_EQ(Print("'{:>4}|{:<4}|{:^4}|{:é>4}|{:4}|{:.1}'.format('a', 'a', 'a', 'a', 'a', 'ab')"),
            "   a|a   | a  |éééa|a   |a");
  EXPECT_EQ(Print("'{:4}|{:04}|{:+}|{:x}|{:#X}|{:d}'.format(7, -7, 7, 255, 255, true)"),
            "   7|-007|+7|ff|0XFF|1");
  EXPECT_EQ(Print("'{:.2f}|{:7.1f}|{:g}|{:5}'.format(2.5, -0.25, 1e6, 1.5)"),
            "2.50|   -0.2|1e+06|  1.5");
  EXPECT_EQ(Print("'{!r}|{!s:>3}|{a!r:<4}|'.format('a', 1, a='b')"), "'a'|  1|'b' |");
  EXPECT_EQ(Print("'{:>10}'.format(user)"), " <u>Öl</u>");
  EXPECT_EQ(Print("('<i>{:>4}' | safe).format('<')"), "<i>   &lt;");
  EXPECT_THAT(Print("('<i>{:>4}' | safe).format('<' | safe)"),
              HasSubstr("not supported with markup"));
}

TEST(JinjaFormattingTest, FieldsInBracesHaveAnIndexOrNone) {
  for (const char* expression : {"'{}{0}'.format(1, 2)", "'{1}{}'.format(1, 2)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("fields with and without an index")) << expression;
  }
  EXPECT_EQ(Print("'{}{a}{}'.format(1, 2, a=3)"), "132");
  EXPECT_EQ(Print("'{1}{a}{0}'.format(1, 2, a=3)"), "231");
}

TEST(JinjaFormattingTest, FieldsWithPercent) {
  EXPECT_EQ(Print("'%s|%5.1f|%-4d|%04d|%%' % (user, 2.25, 7, -7)"), "<u>Öl</u>|  2.2|7   |-007|%");
  EXPECT_EQ(Print("'%(a)s %(b)d' | format(a=words, b=true)"), "['b', 'a', 'C'] 1");
  EXPECT_EQ(Print("'<i>%s' | safe | format('<')"), "<i>&lt;");
  EXPECT_EQ(Print("('%.999f' % 1) | length"), "1001");
  for (const char* expression :
       {"'%s' % ()", "'%s %s' % 1", "'%(a)s' % {}", "'%(a)s' % 'x'", "'%(a)s' | format(1)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("more fields than values")) << expression;
  }
  for (const char* expression : {"'x' % 1", "'%s' % (1, 2)", "'x' | format(none)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("fewer fields than values")) << expression;
  }
  for (const char* expression : {"'%' % 1",
                                 "'%d' % 'a'",
                                 "'%f' % none",
                                 "'%x' % 1.0",
                                 "'%1000s' % 1",
                                 "'%lld' % 1",
                                 "'%d' % ('inf' | float)",
                                 "'%O' % 1",
                                 "'%.' % 1",
                                 "'%(a' % {}",
                                 "'%5%' % 1",
                                 "'%a' % 1",
                                 "'%#g' % 1",
                                 "'%#.0f' % 1",
                                 "'%c' % 'ab'",
                                 "'%c' % 55296",
                                 "'%c' % -1",
                                 "'%.*f' % (1000, 1)",
                                 "'%x' % none",
                                 "'<%x>' | safe | format(1)",
                                 "'<%c>' | safe | format(65)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("which is not supported")) << expression;
  }
  EXPECT_THAT(Print("'%s' | format(1, a=2)"), HasSubstr("not both"));
}

TEST(JinjaFormattingTest, BasesExponentsAndCharacters) {
  EXPECT_EQ(Print("'%x %X %o %#x %#08X %#o %.4x' % (255, 255, 8, 255, 255, 8, -10)"),
            "ff FF 10 0xff 0X0000FF 0o10 -000a");
  EXPECT_EQ(Print("'%e %.1E %g %G %g' % (12345, 0.00123, 1e6, 1e-7, 0.5)"),
            "1.234500e+04 1.2E-03 1e+06 1E-07 0.5");
  EXPECT_EQ(Print("'%F %08f %g' % ('inf' | float, '-inf' | float, 'nan' | float)"),
            "INF -0000inf nan");
  EXPECT_EQ(Print("'%c%c%3c' % (8364, 'é', 'a')"), "€é  a");
  EXPECT_EQ(Print("'%r %.2r %5r' % ('a', 'abc', 1)"), "'a' 'a     1");
  EXPECT_EQ(Print("'%*d|%*d|%.*f|%hd' % (4, 1, -4, 2, 1, 0.25, 3)"), "   1|2   |0.2|3");
  EXPECT_THAT(Print("'%*d' % 'a'"), HasSubstr("a width must be a whole number"));
  EXPECT_THAT(Print("'%*d' % 1"), HasSubstr("more fields than values"));
  EXPECT_EQ(Print("'{a}{b}'.format_map({'a': 1, 'b': user})"), "1<u>Öl</u>");
  EXPECT_THAT(Print("'{a}'.format_map([1])"), HasSubstr("has no names"));
}

TEST(JinjaFormattingTest, WhatIsWrong) {
  for (const char* expression :
       {"'{}'.format()", "'{1}'.format(1)", "'{a}'.format(1)", "'{-1}'.format(1)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("more fields than values")) << expression;
  }
  for (const char* expression :
       {"'{'.format(1)",       "'}'.format(1)",       "'{:{}}'.format(1, 2)", "'{0.x}'.format(1)",
        "'{0[1]}'.format([])", "'{!a}'.format(1)",    "'{!}'.format(1)",      "'{!r5}'.format(1)",
        "'{:,}'.format(1)",    "'{:=5}'.format(1)",   "'{:d}'.format('a')",   "'{:d}'.format(1.0)",
        "'{:s}'.format(1)",    "'{:.2}'.format(1)",   "'{:.2}'.format(1.5)",  "'{:5}'.format(none)",
        "'{:5}'.format([1])",  "'{:5}'.format(true)", "'{:05}'.format('a')",  "'{:%}'.format(1)",
        "'{:ld}'.format(1)",   "'{:*d}'.format(1)",   "'{:5d }'.format(1)",   "'{:x}'.format(1.5)",
        "'{:++d}'.format(1)",  "'{:<05d}'.format(1)", "'{:1000}'.format(1)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("which is not supported")) << expression;
  }
}

}  // namespace
}  // namespace cria::jinja
