#include "jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

TEST(JinjaTemplateTest, NothingIsWrittenOfNothing) {
  EXPECT_TRUE(TryRender("")->empty());
  EXPECT_TRUE(TryRender("{{ empty }}{% set x = 1 %}{# c #}")->empty());
}

TEST(JinjaTemplateTest, TextThatIsNotUtf8StaysAsItIs) {
  EXPECT_EQ(RenderText("\xFF{{ '\xC3' | upper }}\x80"), "\xFF\xC3\x80");
  EXPECT_EQ(Print("'\xFF\xC3' | length"), "2");
}

TEST(JinjaTemplateTest, GlobalsCanBeHidden) {
  EXPECT_EQ(RenderText("{% set words = 'x' %}{% set range = 3 %}{{ words }}{{ range }}"), "x3");
}

// The text that a template writes for a value of `user`.
std::string RenderFor(const Template& parsed, std::string_view user) {
  Context context(Limits{}, FixedTime);
  const Variable variable = {"user", Untrusted(context, user)};
  const auto segments = parsed.Render(context, {&variable, 1});
  return segments ? Joined(*segments) : segments.error().message();
}

// Everything that a rendering could leave in the parsed template: joined texts, and namespaces,
// generators and macros that it makes.
constexpr std::string_view kEverything =
    "{% set ns = namespace(all='') %}{% macro m(x, y='a\\tb' '\\n\u00e9') %}<{{ x ~ y }}>{% "
    "endmacro %}"
    "{% for c in user | list %}{% set ns.all = ns.all ~ m(c) %}{% endfor %}"
    "{{ ns.all }}{{ {'a\\tb': [1, 'x\\ty']}['a\\tb'] | tojson }}{{ 'x\\ty' in 'ax\\tyb' }}"
    "{{ ['b\\t1', 'a\\t2'] | sort | join('\\t,\\t') | upper }}"
    "{% if user == 'stop' %}{{ raise_exception('no\\tmore') }}{% endif %}";

TEST(JinjaTemplateTest, ARenderingLeavesNothingForTheNext) {
  const Template parsed(kEverything);
  ASSERT_TRUE(parsed.status());
  for (const char* user : {"ab", "", "stop", "a<b>\u00e9", "ab", "stop"}) {
    EXPECT_EQ(RenderFor(parsed, user), RenderFor(Template(kEverything), user));
  }
  EXPECT_EQ(RenderFor(parsed, "stop"),
            "The chat template, line 1: the model's template refuses these messages: no more");
}

TEST(JinjaTemplateTest, ThreadsRenderTheSameTemplate) {
  const Template parsed(kEverything);
  std::vector<std::string> users;
  std::vector<std::string> expected;
  for (int i = 0; i < 4; ++i) {
    users.push_back("user " + std::to_string(i));
    expected.push_back(RenderFor(Template(kEverything), users.back()));
  }
  std::vector<size_t> num_right(users.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < users.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int times = 0; times < 200; ++times) {
          if (RenderFor(parsed, users[i]) == expected[i]) ++num_right[i];
        }
      });
    }
  }
  EXPECT_THAT(num_right, testing::Each(200));
}

TEST(JinjaTemplateTest, AMovedTemplateRenders) {
  Template parsed("a\r\n{{ user }}\r\n{{ user.x() }}");
  const Template moved = std::move(parsed);
  EXPECT_EQ(RenderFor(moved, "b"), RenderFor(Template("a\n{{ user }}\n{{ user.x() }}"), "b"));
  EXPECT_THAT(RenderFor(moved, "b"), testing::StartsWith("The chat template, line 3: "));
}

TEST(JinjaTemplateTest, FindsTheVariablesThatItReads) {
  const auto reads = [](std::string_view source) { return Template(source).Reads("x"); };
  for (const char* source :
       {"{{ x }}", "{% if x is defined and not x %}{% endif %}",
        "{% if 0 %}{{ [{'k': -x}] }}{% endif %}",
        "{% if not x is defined %}{% set x = 1 %}{% endif %}", "{% set x = x | default(1) %}",
        "{% for a in x %}{% endfor %}", "{% for a in b if x %}{% endfor %}",
        "{% for a in b %}{% set x = 1 %}{% endfor %}{{ x }}", "{{ f(k=x) }}", "{{ a[x:] }}",
        "{% macro m(a) %}{{ x }}{% endmacro %}", "{% macro m(x) %}{% endmacro %}{{ x }}",
        "{% macro m(a=x) %}{% endmacro %}", "{% set a | replace('b', x) %}{% endset %}",
        "{{ x.y }}", "{% for x in x %}{% endfor %}",
        // Only some of the ways through these set the variable first.
        "{% if a %}{% set x = a %}{% endif %}{{ x }}",
        "{% if a %}{% set x = a %}{% else %}{{ x }}{% endif %}",
        "{% if a %}{% set x = a %}{% elif b %}{% set x = b %}{% endif %}{{ x }}",
        "{% set a %}{% set x = 1 %}{% endset %}{{ x }}",
        "{% filter upper %}{% set x = 1 %}{% endfilter %}{{ x }}", "{{ f(*x) }}"}) {
    EXPECT_TRUE(reads(source)) << source;
  }
  for (const char* source :
       {"x", "{# x #}", "{{ 'x' }}", "{{ a.x }}", "{{ f(x=1) }}", "{{ a | x }}", "{{ xx }}",
        "{% set x = 1 %}{{ x }}", "{% set a, x = b %}{{ x }}", "{% set x %}a{% endset %}{{ x }}",
        "{% for x in a %}{{ x }}{% endfor %}", "{% for a, x in b %}{{ x }}{% endfor %}",
        "{% if a %}{% set x = a %}{% else %}{% set x = 2 %}{% endif %}{{ x }}",
        "{% macro m(x) %}{{ x }}{% endmacro %}", "{% set n = namespace(x=1) %}{{ n.x }}", "{{ x"}) {
    EXPECT_FALSE(reads(source)) << source;
  }
}

}  // namespace
}  // namespace cria::jinja
