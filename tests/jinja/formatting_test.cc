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
