#include "server/calls/tool_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/requests/request_error.h"
#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

// What the format writes before a call that is required.
std::string Opening(std::string_view source, bool reads_tools = true) {
  return FindToolFormat(source, reads_tools)->NextPart(TestTools(), {})->forced;
}

TEST(ToolFormatTest, IsFoundByTheTemplate) {
  EXPECT_EQ(Opening("{{ tools }} <tool_call> </tool_call>"), "<tool_call>\n");
  EXPECT_EQ(Opening("{{ tools }} [TOOL_CALLS] ["), "[TOOL_CALLS]");
  EXPECT_FALSE(FindToolFormat("[TOOL_CALLS] [", true)->goes_on());
  EXPECT_TRUE(FindToolFormat("[TOOL_CALLS] [ARGS]", true)->goes_on());
  EXPECT_EQ(Opening("{{ tools }} <|tool_call|>"), "<|tool_call|>");
  EXPECT_EQ(Opening("{{ tools }} \"parameters\""), "");
  EXPECT_EQ(Opening("{{ messages }}", false), "<tool_call>\n");
  EXPECT_FALSE(FindToolFormat("", false)->template_knows_tools);
}

TEST(ToolFormatTest, SomeTemplatesShowFormsThatAreNotKnown) {
  const auto knows = [](std::string_view source) { return KnowsCallForm(ChatTemplate(source)); };
  EXPECT_TRUE(knows("{% if tools %}{{ tools }} Write <tool_call>.{% endif %}"));
  EXPECT_TRUE(knows("{% if tools %}{{ tools }} Write <|tool_call|>[.{% endif %}"));
  EXPECT_TRUE(knows("{% if tools %}{{ tools }}{{ '{\"name\": ' }}{% endif %}"));
  EXPECT_TRUE(knows("{% if tools %}{{ tools }}{{ \"{\\\"name\\\": \" }}{% endif %}"));
  // Here, the model is told the form in words.
  EXPECT_TRUE(knows("{% for m in messages %}{{ m.content }}{% endfor %}"));
  EXPECT_FALSE(knows("{% if tools %}{{ tools | tojson }}{% endif %}"));
  EXPECT_FALSE(knows("{% if tools %}{{ tools }} <tool_call> <function=f>{% endif %}"));
  EXPECT_FALSE(
      knows("{% for m in messages %}{% for c in m.tool_calls %}<call>{{ c.function.name }}"
            "{% endfor %}{% endfor %}"));
}

TEST(ToolFormatTest, ReferencesOfASchemaAreMoved) {
  const Json schema = Json::parse(CallSchema(TestTools(), "arguments"));
  EXPECT_EQ(schema["anyOf"][0]["properties"]["arguments"]["properties"]["b"]["$ref"],
            "#/anyOf/0/properties/arguments/$defs/n");
  const Json list = Json::parse(CallListSchema(TestTools(), "arguments"));
  EXPECT_EQ(list["items"]["anyOf"][0]["properties"]["arguments"]["properties"]["b"]["$ref"],
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
}  // namespace cria::server
