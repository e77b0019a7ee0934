#include "jinja/render.h"

#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

TEST(JinjaRenderTest, NothingIsWrittenOfNothing) {
  EXPECT_TRUE(TryRender("")->empty());
  EXPECT_TRUE(TryRender("{{ empty }}{% set x = 1 %}{# c #}")->empty());
}

TEST(JinjaRenderTest, TextThatIsNotUtf8StaysAsItIs) {
  EXPECT_EQ(RenderText("\xFF{{ '\xC3' | upper }}\x80"), "\xFF\xC3\x80");
  EXPECT_EQ(Print("'\xFF\xC3' | length"), "2");
}

TEST(JinjaRenderTest, GlobalsCanBeHidden) {
  EXPECT_EQ(RenderText("{% set words = 'x' %}{% set range = 3 %}{{ words }}{{ range }}"), "x3");
}

}  // namespace
}  // namespace cria::jinja
