#include "serve/api/tool_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/api/request_error.h"
#include "serve/api/scripted_answer.h"

namespace cria::serve {
namespace {

using testing::HasSubstr;

// The calls in words: "add{…} time{}"; "none".
std::string Parsed(const ToolFormat& format, std::string_view text) {
  const auto calls = format.Parse(TestTools(), text);
  if (!calls) return "none";
  std::string words;
  for (const ToolCall& call : *calls)
    words += (words.empty() ? "" : " ") + call.name + call.arguments;
  return words;
}

TEST(ToolFormatTest, IsFoundByTheTemplate) {
  const auto opening = [](std::string_view source, bool reads_tools = true) {
    return std::string(FindToolFormat(source, reads_tools)->opening());
  };
  EXPECT_EQ(opening("{{ tools }} <tool_call> </tool_call>"), "<tool_call>");
  EXPECT_EQ(opening("{{ tools }} [TOOL_CALLS] ["), "[TOOL_CALLS]");
  EXPECT_FALSE(FindToolFormat("[TOOL_CALLS] [", true)->goes_on());
  EXPECT_TRUE(FindToolFormat("[TOOL_CALLS] [ARGS]", true)->goes_on());
  EXPECT_EQ(opening("{{ tools }} \"parameters\""), "<|python_tag|>");
  EXPECT_EQ(opening("{{ messages }}", false), "<tool_call>");
  EXPECT_FALSE(FindToolFormat("", false)->template_knows_tools);
}

TEST(ToolFormatTest, LlamaParses) {
  const auto format = MakeLlamaFormat();
  EXPECT_EQ(Parsed(*format, R"({"name": "add", "parameters": {"a": 1}})"), R"(add{"a":1})");
  EXPECT_EQ(Parsed(*format, R"({"type": "function", "name": "time"})"), "time{}");
  EXPECT_EQ(Parsed(*format, R"( {"name": "time", "parameters": {}}; {"name": "add", "arguments":
    {"a": "}"}} )"),
            R"(time{} add{"a":"}"})");
  EXPECT_EQ(Parsed(*format, R"({"name": "add", "parameters": "{\"a\": 2}"})"), R"(add{"a":2})");
  for (const char* text : {"", " ", "text", R"({"name": "other", "parameters": {}})",
                           R"({"name": 1})", R"({"name": "add", "parameters": 5})",
                           R"({"name": "add")", R"({"name": "time"} text)", "[]", "}{", "\""}) {
    EXPECT_EQ(Parsed(*format, text), "none") << text;
  }
}

TEST(ToolFormatTest, HermesParses) {
  const auto format = MakeHermesFormat();
  EXPECT_EQ(Parsed(*format, "\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>"),
            R"(add{"a":1})");
  EXPECT_EQ(Parsed(*format, R"({"name": "time"}</tool_call> <tool_call>{"name": "time"})"),
            "time{} time{}");
  for (const char* text : {"", "x</tool_call>", R"({"name": "time"}</tool_call><tool_call>)",
                           R"({"name": "x"}</tool_call>)"}) {
    EXPECT_EQ(Parsed(*format, text), "none") << text;
  }
}

TEST(ToolFormatTest, MistralParses) {
  const auto format = MakeMistralFormat();
  EXPECT_EQ(
      Parsed(*format, R"([{"name": "add", "arguments": {"a": 1}, "id": "x"}, {"name": "time"}])"),
      R"(add{"a":1} time{})");
  for (const char* text : {"", "[]", "{}", "[1]", R"([{"name": "x"}])"}) {
    EXPECT_EQ(Parsed(*format, text), "none") << text;
  }
  const auto newer = MakeMistralArgumentsFormat();
  EXPECT_EQ(Parsed(*newer, R"(add[ARGS]{"a": 1}[TOOL_CALLS]time[CALL_ID]abc[ARGS]{})"),
            R"(add{"a":1} time{})");
  for (const char* text : {"", "add", "add[ARGS]", "add[ARGS][]", "x[ARGS]{}"}) {
    EXPECT_EQ(Parsed(*newer, text), "none") << text;
  }
}

TEST(ToolFormatTest, ReferencesOfASchemaAreMoved) {
  const Json schema = CallSchema(TestTools(), "arguments");
  EXPECT_EQ(schema["anyOf"][0]["properties"]["arguments"]["properties"]["b"]["$ref"],
            "#/anyOf/0/properties/arguments/$defs/n");
  EXPECT_EQ(
      CallListSchema(
          TestTools(),
          "arguments")["items"]["anyOf"][0]["properties"]["arguments"]["properties"]["b"]["$ref"],
      "#/items/anyOf/0/properties/arguments/$defs/n");
}

TEST(ToolFormatTest, ATemplateWithoutToolsGetsThemInWords) {
  std::vector<ChatMessage> messages = {
      {"system", "Be brief."},
      {"user", "1+2?"},
      {"assistant", "",
       R"({"tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]})"},
      {"tool", "3", R"({"tool_call_id": "x"})"}};
  DescribeTools(TestTools(), messages);
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_THAT(messages[0].content, testing::StartsWith("Be brief.\n\n"));
  EXPECT_THAT(messages[0].content, HasSubstr(R"("name":"add")"));
  EXPECT_EQ(messages[2].content,
            "<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n</tool_call>");
  EXPECT_EQ(messages[3].role, "user");
  EXPECT_EQ(messages[3].content, "<tool_response>\n3\n</tool_response>");
  for (const ChatMessage& message : messages) EXPECT_EQ(message.fields, "");
  std::vector<ChatMessage> without = {{"user", "Hi"}};
  DescribeTools(TestTools(), without);
  EXPECT_EQ(without[0].role, "system");
}

}  // namespace
}  // namespace cria::serve
