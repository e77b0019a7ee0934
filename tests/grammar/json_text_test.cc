#include "grammar/json_text.h"

#include <gtest/gtest.h>

#include <string>

#include "grammar/expression_texts.h"
#include "grammar/json_schema.h"

namespace cria::grammar {
namespace {

TEST(JsonTextTest, ValuesAreWrittenInOneWay) {
  ExpressionTexts texts;
  ASSERT_TRUE(texts.Begin(*AnyJson(texts.expressions())));
  const char* const values[] = {"null",
                                "true",
                                "false",
                                "0",
                                "-12",
                                "3.50",
                                "12345678901234567890",
                                "0.12345678901234567890",
                                R"("")",
                                R"("a\"\\\n\u001f/é😀")",
                                "[]",
                                "[ ]",
                                "[\n]",
                                "{}",
                                "[1,2, 3,\n   4\n]",
                                R"({"a":1, "b": [{}],"a":{"c":null } })",
                                "{\n                    \"a\": 1\n}"};
  for (const char* value : values) EXPECT_TRUE(texts.Matches(value)) << value;
  const char* const others[] = {"",
                                " null",
                                "null ",
                                "nul",
                                "True",
                                "01",
                                "+1",
                                "1.",
                                ".5",
                                "1e5",
                                "1E5",
                                "-",
                                "123456789012345678901",
                                "0.123456789012345678901",
                                "\"",
                                R"("\/")",
                                R"("\u0041")",
                                R"("\u000a")",
                                "\"\n\"",
                                "\"\xFF\"",
                                "\"\xED\xA0\x80\"",
                                "[1 ,2]",
                                "[1,  2]",
                                "[1,]",
                                "[,1]",
                                "[1\t]",
                                "[1]]",
                                "{\"a\" :1}",
                                "{a:1}",
                                "{\"a\"}",
                                "{\"a\":1,}",
                                "[\n                     1]",
                                "[\r\n1]",
                                "nulltrue"};
  for (const char* value : others) EXPECT_FALSE(texts.Matches(value)) << value;
}

TEST(JsonTextTest, ValuesAreNestedDeeply) {
  ExpressionTexts texts;
  ASSERT_TRUE(texts.Begin(*AnyJson(texts.expressions())));
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_TRUE(texts.Matches(deep));
  EXPECT_FALSE(texts.Matches(deep + "]"));
  EXPECT_FALSE(texts.Matches(deep.substr(1)));
}

TEST(JsonTextTest, ObjectsAreObjects) {
  ExpressionTexts texts;
  ASSERT_TRUE(texts.Begin(*AnyJsonObject(texts.expressions())));
  EXPECT_TRUE(texts.Matches(R"({"a": [1, {"b": "c"}]})"));
  EXPECT_FALSE(texts.Matches("[]"));
  EXPECT_FALSE(texts.Matches("1"));
}

TEST(JsonTextTest, StringsAreEscaped) {
  ExpressionTexts texts;
  JsonText text(texts.expressions());
  ASSERT_TRUE(texts.Begin(text.String("a\"\\\t\x01/")));
  EXPECT_TRUE(texts.Matches(R"("a\"\\\t\u0001/")"));
  EXPECT_FALSE(texts.Matches(R"("a\"\\\u0009\u0001/")"));
}

}  // namespace
}  // namespace cria::grammar
