#include "jinja/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaParserTest, Precedence) {
  EXPECT_EQ(Print("1 + 2 * 3"), "7");
  EXPECT_EQ(Print("2 * 3 ** 2"), "18");
  EXPECT_EQ(Print("'a' ~ 1 * 2"), "a2");
  EXPECT_EQ(Print("not 1 == 2"), "True");
  EXPECT_EQ(Print("1 or 1 and 0"), "1");
  EXPECT_EQ(Print("'a' + 'b' | upper"), "aB");
  EXPECT_EQ(Print("-3 | abs"), "3");
  EXPECT_EQ(Print("2 - 1 - 1"), "0");
  EXPECT_EQ(Print("1 if 0 else 2 if 0 else 3"), "3");
  EXPECT_EQ(Print("not empty is defined"), "False");
  EXPECT_EQ(Print("not 'a' in 'b'"), "True");
  EXPECT_EQ(Print("'a' not in 'b'"), "True");
}

TEST(JinjaParserTest, Tuples) {
  EXPECT_EQ(Print("1, 2"), "(1, 2)");
  EXPECT_EQ(Print("(1,)"), "(1,)");
  EXPECT_EQ(Print("(1)"), "1");
  EXPECT_EQ(Print("()"), "()");
}

TEST(JinjaParserTest, HuggingFacesMarkOfGenerationsIsTransparent) {
  EXPECT_EQ(RenderText("a{% generation %}b{% endgeneration %}c"), "abc");
}

TEST(JinjaParserTest, FailuresNameTheLineAndWhatIsWrong) {
  EXPECT_THAT(FailureOf("a\n{{ 1 + }}"), HasSubstr("line 2: '}}' stands where an expression"));
  EXPECT_THAT(FailureOf("{{ (1 }}"), HasSubstr("stands where ')' should be"));
  EXPECT_THAT(FailureOf("{% if 1 %}\n\nx"), HasSubstr("is not closed by 'endif'"));
  EXPECT_THAT(FailureOf("{% for x in y %}"), HasSubstr("is not closed by 'endfor'"));
  EXPECT_THAT(FailureOf("\n{% include 'x' %}"),
              HasSubstr("line 2: the statement 'include' is not supported"));
  EXPECT_THAT(FailureOf("{% endif %}"), HasSubstr("'endif'"));
  EXPECT_THAT(FailureOf("{% call m %}{% endcall %}"), HasSubstr("not followed by the call"));
  EXPECT_THAT(FailureOf("{% with a %}{% endwith %}"), HasSubstr("'=' should be"));
  EXPECT_THAT(FailureOf("{% with a=1 b=2 %}{% endwith %}"), HasSubstr("',' should be"));
  EXPECT_THAT(FailureOf("{% for x in y %}{% call m() %}{% break %}{% endcall %}{% endfor %}"),
              HasSubstr("'break' is outside of a loop"));
  EXPECT_THAT(FailureOf("{% break %}"), HasSubstr("'break' is outside of a loop"));
  EXPECT_THAT(FailureOf("{% for x in y %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}"),
              HasSubstr("'continue' is outside of a loop"));
  EXPECT_THAT(FailureOf("{{ a[] }}"), HasSubstr("nothing between"));
  EXPECT_THAT(FailureOf("{{ f(a=1, 2) }}"), HasSubstr("an argument with a name"));
  EXPECT_THAT(FailureOf("{% for x in y recursive %}"), HasSubstr("is not closed by 'endfor'"));
}

// Also in a branch that does not run.
TEST(JinjaParserTest, WhatIsMissingIsRefusedByName) {
  const auto refusal = [](const std::string& expression) {
    const Status status = Template("{% if false %}{{ " + expression + " }}{% endif %}").status();
    return status ? "not refused" : status.error().message();
  };
  for (const char* filter :
       {"filesizeformat", "pprint", "random", "striptags", "urlize", "xmlattr"}) {
    EXPECT_THAT(refusal("x | " + std::string(filter)),
                HasSubstr("the filter '" + std::string(filter) + "' is not supported"));
  }
  for (const char* call :
       {"x.as_integer_ratio", "x.encode", "x.isidentifier", "x.translate", "lipsum"}) {
    const std::string name = std::string(call).substr(std::string(call).find('.') + 1);
    EXPECT_THAT(refusal(std::string(call) + "()"), HasSubstr("'" + name + "()' is not supported"));
  }
  for (const char* statement : {"block", "extends", "import"}) {
    EXPECT_THAT(FailureOf("{% " + std::string(statement) + " %}"),
                HasSubstr("the statement '" + std::string(statement) + "' is not supported"));
  }
  EXPECT_THAT(FailureOf("{% filter urlize %}{% endfilter %}"), HasSubstr("'urlize'"));
  EXPECT_THAT(refusal("lipsum()"), HasSubstr("because its result is random"));
  EXPECT_THAT(refusal("[1] | random"), HasSubstr("because its result is random"));
  EXPECT_THAT(refusal("'\\N{DIGIT ONE}'"), HasSubstr("write the character itself"));
  // These are values of a dictionary.
  EXPECT_EQ(Print("{'encode': 1}.encode"), "1");
}

TEST(JinjaParserTest, FilterBlocksAndSpreads) {
  EXPECT_THAT(FailureOf("{% filter upper %}"), HasSubstr("is not closed by 'endfilter'"));
  EXPECT_THAT(FailureOf("{% filter %}{% endfilter %}"), HasSubstr("a name"));
  EXPECT_THAT(FailureOf("{{ f(*a, b) }}"), HasSubstr("an argument with a name"));
}

TEST(JinjaParserTest, FailuresAreOfTheFile) {
  EXPECT_EQ(TryRender("{{").error().code(), ErrorCode::kInvalidFile);
  EXPECT_EQ(Template("{{").status().error().code(), ErrorCode::kInvalidFile);
  EXPECT_TRUE(Template("{{ missing.x }}").status());
}

}  // namespace
}  // namespace cria::jinja
