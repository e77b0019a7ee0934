#include "jinja/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The tokens' texts, up to the end.
std::vector<std::string> Tokens(std::string_view source) {
  Context context({}, nullptr);
  context.set_source(source);
  Lexer lexer(context, source);
  std::vector<std::string> tokens;
  for (Token token = lexer.Next(); token.kind != TokenKind::kEnd; token = lexer.Next()) {
    tokens.emplace_back(token.text);
  }
  if (context.failed()) tokens.push_back(context.error().message());
  return tokens;
}

TEST(JinjaLexerTest, TagsAndText) {
  EXPECT_THAT(Tokens("a {{ b }} c"), ElementsAre("a ", "{{", "b", "}}", " c"));
  EXPECT_THAT(Tokens("{% if x %}"), ElementsAre("{%", "if", "x", "%}"));
  EXPECT_THAT(Tokens("{ a } { {"), ElementsAre("{ a } { {"));
  EXPECT_THAT(Tokens(""), ElementsAre());
}

TEST(JinjaLexerTest, SymbolsAreAsLongAsTheyCanBe) {
  EXPECT_THAT(Tokens("{{a**b//c<=d!=e}}"),
              ElementsAre("{{", "a", "**", "b", "//", "c", "<=", "d", "!=", "e", "}}"));
}

TEST(JinjaLexerTest, Numbers) {
  EXPECT_THAT(Tokens("{{1 2.5 1e3 1_000 3.x 1e}}"),
              ElementsAre("{{", "1", "2.5", "1e3", "1_000", "3", ".", "x", "1", "e", "}}"));
}

TEST(JinjaLexerTest, BracesInsideATagDoNotEndIt) {
  EXPECT_THAT(Tokens("{{ {'a':{}} }}"), ElementsAre("{{", "{", "'a'", ":", "{", "}", "}", "}}"));
  EXPECT_THAT(Tokens("{{ '}}' }}"), ElementsAre("{{", "'}}'", "}}"));
}

TEST(JinjaLexerTest, StringsKeepTheirQuotesAndEscapes) {
  EXPECT_THAT(Tokens(R"({{ 'it\'s' "\"" }})"), ElementsAre("{{", R"('it\'s')", R"("\"")", "}}"));
}

TEST(JinjaLexerTest, BlocksTakeTheirLineAway) {
  EXPECT_EQ(RenderText("a\n  {% if true %}  \nb\n\t{% endif %}\nc\n"), "a\n  \nb\nc");
  EXPECT_EQ(RenderText("a {% if true %}\nb{% endif %}\n"), "a b");
  // Not what is printed.
  EXPECT_EQ(RenderText("a\n  {{ 1 }}\nb"), "a\n  1\nb");
}

TEST(JinjaLexerTest, SignsTakeWhiteSpaceAwayOrKeepIt) {
  EXPECT_EQ(RenderText("a \n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(RenderText("a \n {%- if true -%} \n b {%- endif %}"), "ab");
  EXPECT_EQ(RenderText("a\n  {%+ if true +%}\nb{% endif %}"), "a\n  \nb");
  EXPECT_EQ(RenderText("a\u00A0{{- 1 }}"), "a1");
}

TEST(JinjaLexerTest, Comments) {
  EXPECT_EQ(RenderText("a {# {{ b }} #} c"), "a  c");
  EXPECT_EQ(RenderText("a\n  {# b\nc #}\nd {#- e -#} f"), "a\ndf");
  EXPECT_EQ(RenderText("{##}{#-#}x"), "x");
}

TEST(JinjaLexerTest, RawTextIsLeftAlone) {
  EXPECT_EQ(RenderText("{% raw %}{{ a }} {% b %} {# c{% endraw %}d"), "{{ a }} {% b %} {# cd");
  EXPECT_EQ(RenderText("a {%- raw -%} b {%- endraw -%} c"), "abc");
}

TEST(JinjaLexerTest, LineBreaksOfEverySystem) {
  EXPECT_EQ(RenderText("a\r\nb\rc\r\n"), "a\nb\nc");
  EXPECT_EQ(RenderText("a\n\n"), "a\n");
}

TEST(JinjaLexerTest, Failures) {
  EXPECT_THAT(FailureOf("a\nb {{ c"), HasSubstr("line 2: a tag is not closed"));
  EXPECT_THAT(FailureOf("{# c"), HasSubstr("line 1: a comment is not closed"));
  EXPECT_THAT(FailureOf("\n\n{% raw %} c"), HasSubstr("line 3: 'raw' is not closed"));
  EXPECT_THAT(FailureOf("{{ 'c }}"), HasSubstr("a string is not closed"));
  EXPECT_THAT(FailureOf("{{ 'c\\"), HasSubstr("a string is not closed"));
  EXPECT_THAT(FailureOf("{{ a ? b }}"), HasSubstr("a character that is not allowed there"));
}

}  // namespace
}  // namespace cria::jinja
