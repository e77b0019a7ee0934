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
  for (const char* expression :
       {"'%' % 1", "'%d' % 'a'", "'%f' % none", "'%x' % 1", "'%1000s' % 1", "'%*d' % (1, 2)",
        "'%d' % ('inf' | float)", "'%ld' % 1", "'%.' % 1", "'%(a' % {}"}) {
    EXPECT_THAT(Print(expression), HasSubstr("which is not supported")) << expression;
  }
  EXPECT_THAT(Print("'%s' | format(1, a=2)"), HasSubstr("not both"));
}

TEST(JinjaFormattingTest, WhatIsWrong) {
  for (const char* expression :
       {"'{}'.format()", "'{1}'.format(1)", "'{a}'.format(1)", "'{-1}'.format(1)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("more fields than values")) << expression;
  }
  for (const char* expression :
       {"'{'.format(1)", "'}'.format(1)", "'{:{}}'.format(1, 2)", "'{:>3}'.format('a')",
        "'{0.x}'.format(1)", "'{0[1]}'.format([])", "'{!r}'.format(1)"}) {
    EXPECT_THAT(Print(expression), HasSubstr("which is not supported")) << expression;
  }
}

}  // namespace
}  // namespace cria::jinja
