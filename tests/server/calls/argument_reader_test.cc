#include "server/calls/argument_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "server/calls/form_texts.h"
#include "server/calls/literal_reader.h"
#include "server/requests/json_body.h"

namespace cria::server {
namespace {

using State = ArgumentReader::State;

const Tool& FileTool() {
  static const Tool tool = {.name = "write", .parameters = R"({"type":"object","properties":{
        "text":{"type":"string"},"mode":{"enum":["a","w"]},"count":{"type":"integer"},
        "flag":{"type":["boolean","null"]},"list":{"type":"array"},"map":{"type":"object"},
        "any":{},"both":{"type":["string","integer"]},
        "either":{"anyOf":[{"type":"integer"},{"type":"null"}]}}})"};
  return tool;
}

// The JSON of arguments, or why there is none. No piece may be taken back.
std::string ReadArguments(std::string_view id, std::string_view text) {
  const auto reader = MakeArgumentReader(&FormOf(id), FileTool());
  std::string json;
  State state = State::kMore;
  for (size_t i = 0; i < text.size(); ++i) {
    if (state != State::kMore) return state == State::kInvalid ? "invalid" : "too long";
    state = reader->Take(text[i], json);
  }
  if (state != State::kComplete) return state == State::kInvalid ? "invalid" : "more";
  return Written(Json::parse(json));
}

std::string Parameter(std::string_view name, std::string_view value) {
  return "\n<parameter=" + std::string(name) + ">\n" + std::string(value) + "\n</parameter>";
}

std::string Tagged(std::string_view name, std::string_view value) {
  return ReadArguments("function-parameter",
                       Parameter(name, value) + "\n</function>\n</tool_call>");
}

TEST(TaggedArgumentsTest, TextsAreAsTheyAre) {
  EXPECT_EQ(Tagged("text", "a <b> \"c\" \\ 'd'"), R"({"text":"a <b> \"c\" \\ 'd'"})");
  EXPECT_EQ(Tagged("text", "12"), R"({"text":"12"})");
  EXPECT_EQ(Tagged("text", "{\"a\": 1}"), R"({"text":"{\"a\": 1}"})");
  EXPECT_EQ(Tagged("text", ""), R"({"text":""})");
  EXPECT_EQ(Tagged("text", "\n a\n\tb \n"), R"({"text":"\n a\n\tb \n"})");
  EXPECT_EQ(Tagged("text", "</parameter"), R"({"text":"</parameter"})");
  EXPECT_EQ(Tagged("text", "x</function>\n</tool_call>"),
            R"({"text":"x</function>\n</tool_call>"})");
  EXPECT_EQ(Tagged("text", "\x01ü"), "{\"text\":\"\\u0001ü\"}");
  EXPECT_EQ(Tagged("mode", "a"), R"({"mode":"a"})");
}

TEST(TaggedArgumentsTest, OthersAreValues) {
  EXPECT_EQ(Tagged("count", "12"), R"({"count":12})");
  EXPECT_EQ(Tagged("flag", "true"), R"({"flag":true})");
  EXPECT_EQ(Tagged("flag", "False"), R"({"flag":false})");
  EXPECT_EQ(Tagged("flag", "None"), R"({"flag":null})");
  EXPECT_EQ(Tagged("list", "[\"p\", 'q']"), R"({"list":["p","q"]})");
  EXPECT_EQ(Tagged("map", "{\"x\": {\"y\": [1.5]}}"), R"({"map":{"x":{"y":[1.5]}}})");
  EXPECT_EQ(Tagged("either", "3"), R"({"either":3})");
  // What is no value stays text, and the tool sees it.
  EXPECT_EQ(Tagged("count", "twelve"), R"({"count":"twelve"})");
}

TEST(TaggedArgumentsTest, AnUnknownTypeDependsOnTheValue) {
  EXPECT_EQ(Tagged("any", "12"), R"({"any":12})");
  EXPECT_EQ(Tagged("any", "twelve"), R"({"any":"twelve"})");
  EXPECT_EQ(Tagged("both", "12"), R"({"both":12})");
  EXPECT_EQ(Tagged("both", "a b"), R"({"both":"a b"})");
  EXPECT_EQ(Tagged("new", "[1]"), R"({"new":[1]})");
}

TEST(TaggedArgumentsTest, ATextComesInPieces) {
  const auto reader = MakeArgumentReader(&FormOf("function-parameter"), FileTool());
  std::string json;
  for (const char byte : Parameter("text", "line one\nline two").substr(0, 33)) {
    ASSERT_EQ(reader->Take(byte, json), State::kMore);
  }
  EXPECT_EQ(json, R"({"text": "line one\nline t)");
}

TEST(TaggedArgumentsTest, MalformedOnesAreInvalid) {
  EXPECT_EQ(ReadArguments("function-parameter", "\n<parameter=text>\nabc"), "more");
  EXPECT_EQ(ReadArguments("function-parameter", "x"), "invalid");
  EXPECT_EQ(
      ReadArguments("function-parameter", Parameter("text", "a") + "\n</function>\n</tool_c!"),
      "invalid");
  EXPECT_EQ(ReadArguments("function-parameter", "\n<parameter=>\n"), "invalid");
}

TEST(TaggedArgumentsTest, CdataMaySurroundATextOfMiniCpm) {
  EXPECT_EQ(
      ReadArguments("function-param",
                    "<param name=\"text\"><![CDATA[<a></param>\n]]></param><param name=\"count\">1"
                    "</param></function>"),
      R"({"text":"<a></param>\n","count":1})");
  EXPECT_EQ(ReadArguments("function-param", "<param name=\"text\"><![CDAT</param></function>"),
            R"({"text":"<![CDAT"})");
}

TEST(LiteralArgumentsTest, BracesOfGemma) {
  EXPECT_EQ(ReadArguments("call-braces",
                          R"({text:<|"|>it's "}" {<|"|>,count:1,flag:true,list:[<|"|>p<|"|>]})"),
            R"({"text":"it's \"}\" {","count":1,"flag":true,"list":["p"]})");
  EXPECT_EQ(ReadArguments("call-braces", R"({map:{x:{y:1.5}},any:null})"),
            R"({"map":{"x":{"y":1.5}},"any":null})");
  EXPECT_EQ(ReadArguments("call-braces", "{}"), "{}");
  EXPECT_EQ(ReadArguments("call-braces", R"({"text": "a", "count": 2})"),
            R"({"text":"a","count":2})");
  EXPECT_EQ(ReadArguments("call-braces", R"({größe:1, x y : 2, <|"|>a:b<|"|>:3})"),
            R"({"größe":1,"x y":2,"a:b":3})");
  EXPECT_EQ(ReadArguments("call-braces", R"({text:<|"|><|"|>,any:"<|"})"),
            R"({"text":"","any":"<|"})");
  EXPECT_EQ(ReadArguments("call-braces", "{text}"), "invalid");
  EXPECT_EQ(ReadArguments("call-braces", "{ :1}"), "invalid");
  EXPECT_EQ(ReadArguments("call-braces", R"({text:<|"|>abc)"), "more");
}

TEST(LiteralArgumentsTest, KeywordsOfPython) {
  EXPECT_EQ(
      ReadArguments("python-list", R"(text='a (b) "c"', count=-1, flag=None, list=['p', "q"]))"),
      R"({"text":"a (b) \"c\"","count":-1,"flag":null,"list":["p","q"]})");
  EXPECT_EQ(ReadArguments("python-list", R"(text="it's \"so\"\n", map={'x': True}))"),
            R"({"text":"it's \"so\"\n","map":{"x":true}})");
  EXPECT_EQ(ReadArguments("python-list", "größe=1, x y = 2, a[b]=3)"),
            R"({"größe":1,"x y":2,"a[b]":3})");
  EXPECT_EQ(ReadArguments("python-list", "text='\x01 \n')"), R"({"text":"\u0001 \n"})");
  EXPECT_EQ(ReadArguments("python-list", ")"), "{}");
  EXPECT_EQ(ReadArguments("python-list", "=1)"), "invalid");
  EXPECT_EQ(ReadArguments("python-list", "1)"), "invalid");
  EXPECT_EQ(ReadArguments("python-list", "a=1"), "more");
  EXPECT_EQ(ReadArguments("python-list", "a=f(1))"), "invalid");
}

TEST(LiteralReaderTest, RefusesOtherText) {
  for (const char* const text : {"", "{", "[1", "[1 2]", "{a 1}", "'a", "1 2", "tru", "{1:2"}) {
    EXPECT_FALSE(ReadLiteral(text)) << text;
  }
  std::string deep(1000, '[');
  EXPECT_FALSE(ReadLiteral(deep + std::string(1000, ']')));
}

}  // namespace
}  // namespace cria::server
