#include "server/requests/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/requests/request_error.h"

namespace cria::server {
namespace {

std::vector<ChatMessage> Read(const std::string& messages) {
  const Json request = {{"messages", Json::parse(messages)}};
  return ReadMessages(Fields(request));
}

// The field that is refused.
std::string Refused(const std::string& messages) {
  try {
    Read(messages);
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_THAT(error.message(), testing::StartsWith(error.param()));
    return error.param();
  }
  return "nothing";
}

TEST(MessagesTest, ReadsRolesAndContents) {
  const auto messages = Read(R"([{"role": "developer", "content": "a"},
    {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
    {"role": "assistant", "content": null, "refusal": null}, {"role": "user", "content": "d",
     "name": "Ada"}])");
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].content, "bc");
  EXPECT_EQ(messages[2].content, "");
  EXPECT_EQ(messages[2].fields, "");
  EXPECT_EQ(messages[3].fields, R"({"name":"Ada"})");
}

TEST(MessagesTest, CallsAndResultsBecomeFields) {
  const auto messages = Read(R"([{"role": "assistant", "tool_calls": [{"id": "c1", "type":
      "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "3"}])");
  EXPECT_EQ(messages[0].fields,
            R"({"tool_calls":[{"id":"c1","type":"function","function":{"name":"add",)"
            R"("arguments":{"a":1}}}]})");
  EXPECT_EQ(messages[1].fields, R"({"tool_call_id":"c1","name":"add"})");
}

TEST(MessagesTest, ArgumentsKeepTheirNumbers) {
  const auto messages = Read(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f",
      "arguments": "{\"a\": 18446744073709551616, \"b\": 1.50}"}}]}])");
  EXPECT_THAT(messages[0].fields,
              testing::HasSubstr(R"("arguments":{"a":18446744073709551616,"b":1.50})"));
}

TEST(MessagesTest, ReadsOllamasForm) {
  const auto messages =
      Read(R"([{"role": "assistant", "content": "", "thinking": "hm", "tool_calls":
      [{"function": {"name": "add", "arguments": {"a": 1}}}]},
    {"role": "tool", "tool_name": "add", "content": "3", "images": []}])");
  EXPECT_EQ(messages[0].fields,
            R"({"tool_calls":[{"type":"function","function":{"name":"add","arguments":{"a":1}}}],)"
            R"("reasoning_content":"hm"})");
  EXPECT_EQ(messages[1].fields, R"({"name":"add"})");
}

TEST(MessagesTest, ArgumentsThatAreNotJsonStayText) {
  const auto messages = Read(
      R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{x"}}]}])");
  EXPECT_THAT(messages[0].fields, testing::HasSubstr(R"("arguments":"{x")"));
}

TEST(MessagesTest, RefusesByName) {
  EXPECT_EQ(Refused("[]"), "messages");
  EXPECT_EQ(Refused("{}"), "messages");
  EXPECT_EQ(Refused("null"), "messages");
  EXPECT_EQ(Refused("[5]"), "messages[0]");
  EXPECT_EQ(Refused("[{}]"), "messages[0].role");
  EXPECT_EQ(Refused(R"([{"role": 5}])"), "messages[0].role");
  EXPECT_EQ(Refused(R"([{"role": "ipython", "content": ""}])"), "messages[0].role");
  EXPECT_EQ(Refused(R"([{"role": "user", "content": "a"}, {"role": "user"}])"),
            "messages[1].content");
  EXPECT_EQ(Refused(R"([{"role": "user", "content": 5}])"), "messages[0].content");
  EXPECT_EQ(Refused(R"([{"role": "user", "content": [5]}])"), "messages[0].content[0]");
  EXPECT_EQ(Refused(R"([{"role": "user", "content": [{"type": "image_url"}]}])"),
            "messages[0].content[0].type");
  EXPECT_EQ(Refused(R"([{"role": "user", "content": [{"type": "text"}]}])"),
            "messages[0].content[0].text");
  EXPECT_EQ(Refused(R"([{"role": "user", "content": "", "images": ["x"]}])"), "messages[0].images");
  EXPECT_EQ(Refused(R"([{"role": "assistant", "tool_calls": 5}])"), "messages[0].tool_calls");
  EXPECT_EQ(Refused(R"([{"role": "assistant", "tool_calls": [{}]}])"),
            "messages[0].tool_calls[0].function");
  EXPECT_EQ(Refused(R"([{"role": "assistant", "tool_calls": [{"function": {}}]}])"),
            "messages[0].tool_calls[0].function.name");
  EXPECT_EQ(Refused(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f",
                        "arguments": 5}}]}])"),
            "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(Refused(R"([{"role": "user", "content": "", "name": 5}])"), "messages[0].name");
}

TEST(MessagesTest, CallsAreBounded) {
  const auto with_calls = [](size_t count, const std::string& arguments) {
    const Json call = {{"function", {{"name", "f"}, {"arguments", arguments}}}};
    return Json::array({{{"role", "assistant"}, {"tool_calls", Json(count, call)}}}).dump();
  };
  EXPECT_EQ(Refused(with_calls(4096, "")), "nothing");
  EXPECT_EQ(Refused(with_calls(4097, "")), "messages[0].tool_calls");
  std::string list = "[1";
  for (size_t i = 3; i < (size_t{1} << 14); ++i) list += ",1";
  const std::string half = R"({"a":)" + list + "]}";
  EXPECT_EQ(Refused(with_calls(2, half)), "nothing");
  EXPECT_EQ(Refused(with_calls(3, half)), "messages[0].tool_calls[2].function.arguments");
}

}  // namespace
}  // namespace cria::server
