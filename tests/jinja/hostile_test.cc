// Templates that want more than they may have end in a sentence, soon.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

std::string Times(int count, std::string_view text) {
  std::string repeated;
  for (int i = 0; i < count; ++i) repeated += text;
  return repeated;
}

TEST(JinjaHostileTest, TimeAndMemory) {
  for (const std::string& source : {
           std::string("{% for i in range(10 ** 12) %}{% endfor %}"),
           std::string(
               "{% for i in range(3000) %}{% for j in range(3000) %}{% endfor %}{% endfor %}"),
           std::string("{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
                       "{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
           std::string("{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
                       "{% set ns.x = ns.x | replace('a', ns.x) %}{% endfor %}"),
           std::string("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}"
                       "{% set ns.x = ns.x + ns.x %}{% endfor %}"),
           std::string("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}"
                       "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}"),
           std::string("{{ 'abc' * 10 ** 12 }}"),
           std::string("{{ [1] * 10 ** 12 }}"),
           std::string("{{ ('x' * 100000) | list | length * 1000 }}{% for i in range(10 ** 6) %}"
                       "{{ ('x' * 100000) | length }}{% endfor %}"),
           std::string("{{ 2 ** 10 ** 12 }}"),
           std::string("{{ (-1) ** 10000000000 }}"),
           std::string("{{ 'a' | indent(10 ** 9, true) }}"),
           std::string("{{ [[[1]]] | tojson(indent=10 ** 9) }}"),
           std::string("{{ 'a' | center(10 ** 12) }}"),
           std::string("{{ 'a'.ljust(9223372036854775807) }}"),
           std::string("{{ ('ab' * 10 ** 6) | replace('', 'x' * 10 ** 6) }}"),
           std::string("{{ ([range(1000) | list] * 10 ** 5) | sum(start=[]) | length }}"),
           std::string("{{ range(10 ** 7) | max }}"),
           std::string("{% for i in range(10 ** 6) %}{{ ('x ' * 100000) | wordcount }}"
                       "{{ ('x ' * 100000) | truncate(5, leeway=0) }}{% endfor %}"),
           std::string(
               "{% set x = 'a' * 100000 %}{% for i in range(10 ** 6) %}{{ x }}{% endfor %}"),
           std::string("{{ range(10 ** 6) | list | sort | unique | list }}"),
           std::string("{{ dict(*range(10 ** 7)) }}"),
           std::string("{% for i in range(10 ** 6) %}{{ ('\u03a3.' * 10000) | lower | length }}"
                       "{% endfor %}"),
           std::string("{% for i in range(10 ** 6) %}{{ ('<' * 10000) | e | length }}"
                       "{% endfor %}"),
       }) {
    const auto rendered = TryRender(source);
    ASSERT_FALSE(rendered) << source;
    EXPECT_THAT(rendered.error().message(),
                AnyOf(HasSubstr("takes too long"), HasSubstr("too much memory"),
                      HasSubstr("writes too much"), HasSubstr("too large"),
                      HasSubstr("more than 16"), HasSubstr("becomes too long")))
        << source;
    EXPECT_THAT(rendered.error().message(), HasSubstr("line 1: ")) << source;
  }
}

TEST(JinjaHostileTest, Depth) {
  constexpr int kMany = 20000;
  for (const std::string& source : {
           "{{ " + Times(kMany, "(") + "1" + Times(kMany, ")") + " }}",
           "{{ " + Times(kMany, "[") + Times(kMany, "]") + " }}",
           "{{ " + Times(kMany, "-") + "1 }}",
           "{{ " + Times(kMany, "a if b else ") + "1 }}",
           "{{ 1" + Times(kMany, " + 1") + " }}",
           "{{ a" + Times(kMany, ".b") + " }}",
           "{{ a" + Times(kMany, " | upper") + " }}",
           "{{ f" + Times(kMany, "(1)") + " }}",
           Times(10000, "{% if 1 %}"),
           Times(10000, "{% for x in [1] %}"),
           "{% for " + Times(kMany, "(") + "x in y %}",
           std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
           Times(10000, "{% filter upper %}"),
           std::string("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}"
                       "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}"),
           std::string("{% set ns = namespace(x=[], y=[]) %}{% for i in range(1000) %}"
                       "{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}"
                       "{{ ns.x == ns.y }}"),
           std::string("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}"
                       "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}"),
       }) {
    const auto rendered = TryRender(source);
    ASSERT_FALSE(rendered) << source.substr(0, 40);
    EXPECT_THAT(rendered.error().message(), HasSubstr("nested too deeply")) << source.substr(0, 40);
  }
  // Many things beside one another are no depth.
  EXPECT_EQ(Print("not " + Times(10000, "not ") + "1"), "False");
  EXPECT_EQ(RenderText("{% if 0 %}" + Times(5000, "{% elif 0 %}") + "{% else %}a{% endif %}"), "a");
}

TEST(JinjaHostileTest, Size) {
  EXPECT_THAT(FailureOf(std::string(kMaxTemplateBytes + 1, 'x')), HasSubstr("too long"));
  EXPECT_EQ(RenderText(std::string(kMaxTemplateBytes, 'x')).size(), kMaxTemplateBytes);
  EXPECT_THAT(FailureOf("{{ '" + std::string(100000, 'x') + "' * 1000 }}"),
              AnyOf(HasSubstr("too much"), HasSubstr("too long")));
}

// The length of a string that is repeated without copies must not exceed a size_t of 32 bits, or it
// would be joined in too little memory.
TEST(JinjaHostileTest, LengthOfAStringOfRepeatedPieces) {
  const std::string piece(size_t{1} << 17, 'x');
  const std::string begin = "{% set a = '" + piece + "' %}{% set b = a * ";
  EXPECT_EQ(RenderText(begin + "8192 %}ok"), "ok");
  for (const char* times : {"8193", "32769", "10 ** 9"}) {
    EXPECT_THAT(FailureOf(begin + times + " %}{{ b | length }}"), HasSubstr("becomes too long"));
  }
  EXPECT_THAT(FailureOf(begin + "5000 %}{% set c = b ~ b %}"), HasSubstr("becomes too long"));
}

TEST(JinjaHostileTest, EveryLimitIsKept) {
  EXPECT_THAT(FailureOf("{{ 'abcd' }}", {.output_bytes = 3}), HasSubstr("writes too much text"));
  EXPECT_THAT(FailureOf("{{ 'abcd' }}", {.steps = 3}), HasSubstr("takes too long"));
  EXPECT_THAT(FailureOf("{{ words }}", {.memory_bytes = 1000}), HasSubstr("too much memory"));
}

// Wherever memory ends, the rendering ends in a sentence.
TEST(JinjaHostileTest, ALittleMoreMemoryEachTime) {
  constexpr std::string_view kSource =
      "{% set ns = namespace(x='') %}{% for w in words | sort if w != 'z' %}"
      "{% set ns.x = ns.x ~ w | upper | replace('A', 'bb') %}{% endfor %}"
      "{% macro m(a, b=1) %}{{ {'k': [a, b, user]} | tojson(indent=1) }}{% endmacro %}"
      "{{ m(ns.x[::-1]) }}{{ 'a,b'.split(',') | join }}{{ messages | map(attribute='role') | list "
      "}}";
  const std::string whole = RenderText(kSource);
  bool rendered = false;
  for (size_t memory_bytes = 0; memory_bytes < 200000 && !rendered; memory_bytes += 56) {
    const auto result = TryRender(kSource, {.memory_bytes = memory_bytes});
    rendered = result.has_value();
    if (rendered) {
      EXPECT_EQ(Joined(*result), whole);
    } else {
      ASSERT_THAT(result.error().message(), HasSubstr("too much memory"));
    }
  }
  EXPECT_TRUE(rendered);
}

// Likewise with time.
TEST(JinjaHostileTest, AnotherStepEachTime) {
  constexpr std::string_view kSource =
      "{% for w in words | sort %}{{ w | upper ~ loop.index }}{% endfor %}{{ words[1:] | tojson }}";
  bool rendered = false;
  for (size_t steps = 0; steps < 10000 && !rendered; ++steps) {
    const auto result = TryRender(kSource, {.steps = steps});
    rendered = result.has_value();
    if (!rendered) {
      ASSERT_THAT(result.error().message(), HasSubstr("takes too long"));
    }
  }
  EXPECT_TRUE(rendered);
}

}  // namespace
}  // namespace cria::jinja
