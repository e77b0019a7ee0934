#include "jinja/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaJsonTest, OneLine) {
  EXPECT_EQ(Print("{'a': [1, 2.0, true, none], 'b': 'x'} | tojson"),
            R"({"a": [1, 2.0, true, null], "b": "x"})");
  EXPECT_EQ(Print("[[], {}, ()] | tojson"), "[[], {}, []]");
}

TEST(JinjaJsonTest, OnlyWhatMustBeIsEscaped) {
  EXPECT_EQ(Print(R"('"\\/\n\r\t\b\f\u0001\u001f\u00e9<&' | tojson)"),
            R"("\"\\/\n\r\t\b\f\u0001\u001fé<&")");
}

TEST(JinjaJsonTest, Indented) {
  EXPECT_EQ(Print("{'a': [1, {}], 'b': []} | tojson(indent=2)"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

TEST(JinjaJsonTest, NoIndentIsNotOneLine) {
  EXPECT_EQ(Print("[1, [2]] | tojson(indent=0)"), "[\n1,\n[\n2\n]\n]");
  EXPECT_EQ(Print("[1] | tojson(indent=-1)"), "[\n1\n]");
  EXPECT_EQ(Print("{'a': 1} | tojson(indent='\t')"), "{\n\t\"a\": 1\n}");
}

TEST(JinjaJsonTest, OnlyAscii) {
  EXPECT_EQ(Print("'é\u007f\U0001F600\n~' | tojson(ensure_ascii=true)"),
            R"("\u00e9\u007f\ud83d\ude00\n~")");
  EXPECT_EQ(Print("{'ö': user} | tojson(true)"), R"({"\u00f6": "<u>\u00d6l</u>"})");
}

TEST(JinjaJsonTest, NumbersThatAreNone) {
  EXPECT_EQ(Print("['inf' | float, '-inf' | float, 'nan' | float, 100000.0, 1e16] | tojson"),
            "[Infinity, -Infinity, NaN, 100000.0, 1e+16]");
}

TEST(JinjaJsonTest, Separators) {
  EXPECT_EQ(Print("{'b': 1, 'a': [2, 3]} | tojson(separators=(',', ':'), sort_keys=true)"),
            R"({"a":[2,3],"b":1})");
}

TEST(JinjaJsonTest, Failures) {
  EXPECT_THAT(Print("missing | tojson"), HasSubstr("undefined cannot be written as JSON"));
  EXPECT_THAT(Print("1 | tojson(indent='                 ')"), HasSubstr("more than 16 bytes"));
  EXPECT_THAT(Print("1 | tojson(indent=1000)"), HasSubstr("more than 16"));
  EXPECT_THAT(Print("1 | tojson(separators=',')"), HasSubstr("two separators"));
}

}  // namespace
}  // namespace cria::jinja
