#include "jinja/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaInterpreterTest, LoopVariables) {
  EXPECT_EQ(RenderText("{% for w in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
                       "{{ loop.revindex0 }}{{ loop.length }}{{ loop.first }}{{ loop.last }} "
                       "{% endfor %}"),
            "10323TrueFalse 21213FalseFalse 32103FalseTrue ");
  EXPECT_EQ(RenderText("{% for w in words %}{{ loop.previtem }}<{{ w }}<{{ loop.nextitem }} "
                       "{% endfor %}"),
            "<b<a b<a<C a<C< ");
}

TEST(JinjaInterpreterTest, LoopsGoThroughWhatPythonsWould) {
  EXPECT_EQ(RenderText("{% for c in '\u00e9a' %}[{{ c }}]{% endfor %}"), "[\u00e9][a]");
  EXPECT_EQ(RenderText("{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}"), "ab");
  EXPECT_EQ(RenderText("{% for x in missing %}{% else %}none{% endfor %}"), "none");
  EXPECT_THAT(FailureOf("{% for x in 5 %}{% endfor %}"), HasSubstr("int cannot be iterated"));
}

TEST(JinjaInterpreterTest, RecursiveLoops) {
  constexpr const char* kTree =
      "{% for x in [[1, [2]], 3] recursive %}({{ loop.depth }}{{ loop.depth0 }}{{ loop.index }}"
      "{% if x is iterable %}{{ loop(x) }}{% else %}={{ x }}{% endif %}){% endfor %}";
  EXPECT_EQ(RenderText(kTree), "(101(211=1)(212(321=2)))(102=3)");
  // A loop within another one is no recursion.
  EXPECT_EQ(RenderText("{% for x in [1] %}{% for y in [1] %}{{ loop.depth }}{% endfor %}"
                       "{% endfor %}"),
            "1");
  // A call sees what surrounds the loop, not what its body has set.
  EXPECT_EQ(RenderText("{% set z = 1 %}{% for x in [[2]] recursive %}{{ z }}{% set z = 3 %}"
                       "{{ z }}{% if x is iterable %}{{ loop(x) }}{% endif %}{% endfor %}{{ z }}"),
            "13131");
  EXPECT_EQ(RenderText("{% for x in [[], 3] if x != 4 recursive %}<{% if x is iterable %}"
                       "{{ loop(x) | upper }}{% endif %}>{% else %}none{% endfor %}"),
            "<NONE><>");
  EXPECT_EQ(RenderText("{% for x in [[1, 2], 3] recursive %}{% if x is iterable %}{{ loop(x) }}"
                       "{% else %}{{ x }}{% break %}{% endif %}{% endfor %}"),
            "13");
  EXPECT_EQ(RenderText("{% set keep = namespace() %}{% for x in [1] recursive %}"
                       "{% set keep.loop = loop %}a{{ x }}{% endfor %}{{ keep.loop([5]) }}"),
            "a1a5");
  EXPECT_THAT(FailureOf("{% for x in [1] %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("not marked 'recursive'"));
  EXPECT_THAT(FailureOf("{% for x in [1] recursive %}{{ loop() }}{% endfor %}"),
              HasSubstr("one argument"));
  EXPECT_THAT(FailureOf("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}"),
              HasSubstr("nested too deeply"));
}

TEST(JinjaInterpreterTest, ALoopTellsWhetherValuesChanged) {
  EXPECT_EQ(RenderText("{% for x in [1, 1, 2, 1] %}{{ loop.changed(x) }} {% endfor %}"),
            "True False True True ");
  EXPECT_EQ(RenderText("{% for x in [1, 2] %}{{ loop.changed(x, 'a') }}{{ loop.changed() }} "
                       "{% endfor %}"),
            "TrueTrue TrueTrue ");
  EXPECT_EQ(RenderText("{% for x in [1, 2] %}{{ loop.changed() }}{% endfor %}"), "TrueFalse");
}

TEST(JinjaInterpreterTest, LoopsWithConditionsAndElse) {
  EXPECT_EQ(RenderText("{% for n in numbers if n > 1 %}{{ n }}/{{ loop.length }} {% endfor %}"),
            "3/2 2/2 ");
  EXPECT_EQ(RenderText("{% for n in numbers if n > 5 %}{{ n }}{% else %}none{% endfor %}"), "none");
}

TEST(JinjaInterpreterTest, BreakAndContinue) {
  EXPECT_EQ(RenderText("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
                       "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "023");
}

TEST(JinjaInterpreterTest, Unpacking) {
  EXPECT_EQ(RenderText("{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}"), "1234");
  EXPECT_EQ(RenderText("{% set a, b = 'xy' %}{{ b }}{{ a }}"), "yx");
  EXPECT_THAT(FailureOf("{% set a, b = [1] %}"), HasSubstr("as many items as there are names"));
}

TEST(JinjaInterpreterTest, ScopesOfVariables) {
  // What a loop sets, its next round does not see, nor what comes after it.
  EXPECT_EQ(RenderText("{% set x = 1 %}{% for i in range(2) %}{{ x }}{% set x = 5 %}{{ x }}"
                       "{% endfor %}{{ x }}"),
            "15151");
  EXPECT_EQ(RenderText("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
  EXPECT_EQ(RenderText("{% set ns = namespace(n=1) %}{% for i in [2, 3] %}"
                       "{% set ns.n = ns.n * i %}{% endfor %}{{ ns.n }}"),
            "6");
  EXPECT_THAT(FailureOf("{% set messages.x = 1 %}"), HasSubstr("only a namespace"));
}

TEST(JinjaInterpreterTest, BlocksAsValues) {
  EXPECT_EQ(RenderText("{% set x %} a {{ words[0] }} {% endset %}[{{ x }}]"), "[ a b ]");
  EXPECT_EQ(RenderText("{% set x | trim | upper %} a {% endset %}[{{ x }}]"), "[A]");
}

TEST(JinjaInterpreterTest, Macros) {
  EXPECT_EQ(RenderText("{% macro m(a, b='x', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}"
                       "{{ m(1) }} {{ m(1, c=2) }} {{ m(b=3) }}"),
            "1x1 1x2 3");
  EXPECT_EQ(
      RenderText("{% macro m() %}{{ i }}{% endmacro %}{% for i in [1] %}{{ m() }}{% endfor %}"),
      "");
  EXPECT_THAT(FailureOf("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"),
              HasSubstr("'m' is given an argument"));
}

TEST(JinjaInterpreterTest, CallsOfMacrosWithABlock) {
  const std::string macro = "{% macro m(a) %}<{{ a }}{{ caller() }}>{% endmacro %}";
  EXPECT_EQ(RenderText(macro + "{% call m(1) %}{{ words[0] }}{% endcall %}"), "<1b>");
  EXPECT_EQ(RenderText("{% macro m() %}{{ caller(1) }}{% endmacro %}"
                       "{% call(x, y=2) m() %}{{ x }}{{ y }}{% endcall %}"),
            "12");
  EXPECT_THAT(FailureOf(macro + "{{ m(1) }}"), HasSubstr("'caller' is undefined"));
  // Only a block gives the caller.
  EXPECT_THAT(FailureOf(macro + "{{ m(1, 2) }}"), HasSubstr("'m' is given an argument"));
  EXPECT_THAT(FailureOf("{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}"),
              HasSubstr("'m' is given an argument"));
  EXPECT_THAT(FailureOf("{% call range(3) %}{% endcall %}"),
              HasSubstr("'range' is given an argument"));
}

TEST(JinjaInterpreterTest, VariablesOfABlock) {
  EXPECT_EQ(RenderText("{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% set c = 3 %}"
                       "{% endwith %}{{ a }}{{ c is defined }}"),
            "211False");
  EXPECT_THAT(FailureOf("{% with a, b = [1] %}{% endwith %}"),
              HasSubstr("does not have as many items"));
}

TEST(JinjaInterpreterTest, ListsOfArguments) {
  const std::string macro = "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}";
  EXPECT_EQ(RenderText(macro + "{{ m(*[1]) }}{{ m(*words[:2]) }}{{ m(*[1], **{'b': 3}) }}"),
            "12ba13");
  EXPECT_EQ(RenderText(macro + "{{ m.name }}"), "m");
  EXPECT_THAT(FailureOf(macro + "{{ m.arguments }}"),
              HasSubstr("'arguments' of a macro is not supported"));
  EXPECT_THAT(FailureOf(macro + "{{ m(**1) }}"), HasSubstr("not followed by a dictionary"));
  EXPECT_THAT(FailureOf(macro + "{{ m(1, a=2) }}"), HasSubstr("'m' is given an argument"));
  EXPECT_THAT(FailureOf(macro + "{{ m(*words) }}"), HasSubstr("'m' is given an argument"));
  EXPECT_THAT(FailureOf(macro + "{{ m(*1) }}"), HasSubstr("int cannot be iterated"));
}

TEST(JinjaInterpreterTest, FilterBlocks) {
  EXPECT_EQ(RenderText("{% filter upper | trim %} a{% set b = 1 %}{% endfilter %}{{ b }}"), "A");
  // What the block of a set sets is its own, too.
  EXPECT_EQ(
      RenderText("{% set x = 1 %}{% set y %}{% set x = 2 %}{{ x }}{% endset %}{{ x }}{{ y }}"),
      "12");
}

TEST(JinjaInterpreterTest, OnlyWhatIsNeededIsEvaluated) {
  EXPECT_EQ(Print("1 or missing.x"), "1");
  EXPECT_EQ(Print("0 and missing.x"), "0");
  EXPECT_EQ(Print("1 if true else missing.x"), "1");
  EXPECT_EQ(RenderText("{% if false %}{{ missing.x }}{% elif true %}a{% endif %}"), "a");
}

TEST(JinjaInterpreterTest, FailuresNameTheLine) {
  EXPECT_THAT(FailureOf("a\n{% if true %}\n{{ 'x' +\n1 }}{% endif %}"), HasSubstr("line 3: '+'"));
  EXPECT_THAT(FailureOf("\n\n{{ words | nothing }}"),
              HasSubstr("line 3: the filter 'nothing' is not known"));
  EXPECT_THAT(FailureOf("{{ words is nothing }}"), HasSubstr("the test 'nothing' is not known"));
  EXPECT_THAT(FailureOf("{{ nothere(1) }}"), HasSubstr("'nothere' is undefined"));
  EXPECT_THAT(FailureOf("{{ 1(2) }}"), HasSubstr("int cannot be called"));
  EXPECT_EQ(TryRender("{{ missing.x }}").error().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace cria::jinja
