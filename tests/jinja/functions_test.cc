#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaFunctionsTest, Range) {
  EXPECT_EQ(Print("[range(3) | list, range(1, 3) | list, range(5, 0, -2) | list]"),
            "[[0, 1, 2], [1, 2], [5, 3, 1]]");
  EXPECT_EQ(Print("range(9223372036854775806, 9223372036854775807, 5) | join"),
            "9223372036854775806");
  EXPECT_THAT(Print("range('3')"), HasSubstr("must be a whole number"));
}

TEST(JinjaFunctionsTest, DictionariesAndNamespaces) {
  EXPECT_EQ(Print("dict(a=1, b='x')"), "{'a': 1, 'b': 'x'}");
  EXPECT_EQ(Print("dict({'a': 1}, b=2)"), "{'a': 1, 'b': 2}");
  EXPECT_EQ(Print("namespace(a=1).a"), "1");
  EXPECT_THAT(Print("namespace(1)"), HasSubstr("cannot become a dictionary"));
}

TEST(JinjaFunctionsTest, SomeAreOnlyDefined) {
  EXPECT_EQ(Print("[lipsum is defined, cycler is callable, joiner is defined, x is defined]"),
            "[True, True, True, False]");
  EXPECT_THAT(RenderText("{% set f = lipsum %}{{ f(1) }}"), HasSubstr("is not supported"));
}

TEST(JinjaFunctionsTest, CyclersAndJoiners) {
  EXPECT_EQ(RenderText("{% set c = cycler(*words) %}{% for i in range(4) %}{{ c.next() }}"
                       "{% endfor %}{{ c.current }}{{ c.pos }}{{ c.reset() }}{{ c.items }}"),
            "baCba1None('b', 'a', 'C')");
  EXPECT_EQ(RenderText("{% set j = joiner() %}{{ j() }}a{{ j() }}b{{ j() }}"), "a, b, ");
  EXPECT_EQ(RenderText("{% set j = joiner(sep=1) %}[{{ j() }}{{ j() }}]"), "[1]");
  EXPECT_THAT(Print("cycler()"), HasSubstr("needs items"));
  EXPECT_THAT(Print("cycler(a=1)"), HasSubstr("needs items"));
  EXPECT_THAT(Print("cycler(1)()"), HasSubstr("type cycler cannot be called"));
  EXPECT_THAT(Print("cycler(1)"), HasSubstr("type cycler is not written as text"));
  EXPECT_THAT(Print("joiner()(1)"), HasSubstr("does not take"));
}

// Python writes it as a range or as a part of a dictionary, and JSON has neither.
TEST(JinjaFunctionsTest, WhatIsNoList) {
  EXPECT_EQ(Print("[{'a': 1}.keys(), {'a': 1}.values(), {'a': 1}.items()]"),
            "[dict_keys(['a']), dict_values([1]), dict_items([('a', 1)])]");
  EXPECT_THAT(Print("range(3)"), HasSubstr("the filter 'list'"));
  EXPECT_EQ(Print("range(3) | list | tojson"), "[0, 1, 2]");
  EXPECT_THAT(Print("range(3) | tojson"), HasSubstr("is not JSON"));
  EXPECT_THAT(Print("{'a': 1}.keys() | tojson"), HasSubstr("is not JSON"));
  EXPECT_THAT(Print("namespace(a=1)"), HasSubstr("not written as text"));
}

TEST(JinjaFunctionsTest, TheTemplatesOwnRefusal) {
  const auto refused = TryRender("a\n{{ raise_exception('Only ' ~ words[0]) }}");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  EXPECT_EQ(refused.error().message(),
            "The chat template, line 2: the model's template refuses these messages: Only b");
  // Long messages stay sentences.
  const std::string long_refusal = Print("raise_exception('a\\nb' ~ 'é' * 1000)");
  EXPECT_THAT(long_refusal, HasSubstr("these messages: a bé"));
  EXPECT_LT(long_refusal.size(), 400u);
}

TEST(JinjaFunctionsTest, TheDate) {
  EXPECT_EQ(Print("strftime_now('%d %b %Y, %H:%M:%S')"), "01 Dec 2024, 15:04:05");
  // What does not fit is nothing.
  EXPECT_EQ(Print("strftime_now('%Y' * 1000)"), "");
}

}  // namespace
}  // namespace cria::jinja
