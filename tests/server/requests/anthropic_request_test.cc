// How messages of Anthropic's form are read.

#include "server/requests/anthropic_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/requests/request_error.h"

namespace cria::server {
namespace {

std::vector<ChatMessage> ReadTurns(const std::string& messages) {
  const Json request = {{"messages", Json::parse(messages)}};
  return ReadAnthropicTurns(Fields(request));
}

// The field that is refused.
std::string RefusedTurn(const std::string& messages) {
  try {
    ReadTurns(messages);
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_THAT(error.message(), testing::StartsWith(error.param()));
    return error.param();
  }
  return "nothing";
}

TEST(AnthropicRequestTest, TextsAreJoined) {
  const auto turns = ReadTurns(R"([{"role": "user", "content": "a"},
    {"role": "assistant", "content": [{"type": "text", "text": "b", "cache_control": {}},
                                      {"type": "text", "text": "c"}]},
    {"role": "user", "content": [{"type": "text", "text": "d"}]}, {"role": "user", "content": []}])");
  ASSERT_EQ(turns.size(), 4u);
  EXPECT_EQ(turns[0].content, "a");
  EXPECT_EQ(turns[1].role, "assistant");
  EXPECT_EQ(turns[1].content, "bc");
  EXPECT_EQ(turns[1].fields, "");
  EXPECT_EQ(turns[2].content, "d");
  EXPECT_EQ(turns[3].content, "");
}

TEST(AnthropicRequestTest, CallsAndResultsBecomeMessagesOfTools) {
  const auto turns = ReadTurns(R"([{"role": "assistant", "content": [
      {"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "Sure."},
      {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
      {"type": "tool_use", "id": "t2", "name": "now"}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "t2", "content": "noon", "is_error": false},
      {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "3"}]},
      {"type": "tool_result", "tool_use_id": "t9"},
      {"type": "text", "text": "Go on."}]}])");
  ASSERT_EQ(turns.size(), 5u);
  EXPECT_EQ(turns[0].content, "Sure.");
  EXPECT_EQ(turns[0].fields,
            R"({"tool_calls":[{"id":"t1","type":"function","function":{"name":"add",)"
            R"("arguments":{"a":1}}},{"id":"t2","type":"function","function":{"name":"now",)"
            R"("arguments":{}}}],"reasoning_content":"hm"})");
  EXPECT_EQ(turns[1].role, "tool");
  EXPECT_EQ(turns[1].content, "noon");
  EXPECT_EQ(turns[1].fields, R"({"tool_call_id":"t2","name":"now"})");
  EXPECT_EQ(turns[2].content, "3");
  EXPECT_EQ(turns[2].fields, R"({"tool_call_id":"t1","name":"add"})");
  EXPECT_EQ(turns[3].fields, R"({"tool_call_id":"t9"})");
  EXPECT_EQ(turns[4].role, "user");
  EXPECT_EQ(turns[4].content, "Go on.");
}

TEST(AnthropicRequestTest, WhatIsWrongIsRefusedByName) {
  EXPECT_EQ(RefusedTurn("[]"), "messages");
  EXPECT_EQ(RefusedTurn("[5]"), "messages[0]");
  EXPECT_EQ(RefusedTurn(R"([{"content": "a"}])"), "messages[0].role");
  EXPECT_EQ(RefusedTurn(R"([{"role": "system", "content": "a"}])"), "messages[0].role");
  EXPECT_EQ(RefusedTurn(R"([{"role": "user"}])"), "messages[0].content");
  EXPECT_EQ(RefusedTurn(R"([{"role": "user", "content": 5}])"), "messages[0].content");
  const auto refused_block = [](const std::string& role, const std::string& block) {
    return RefusedTurn(R"([{"role": ")" + role + R"(", "content": [)" + block + "]}]");
  };
  std::string results = R"({"type": "tool_result", "tool_use_id": "a"})";
  for (int i = 0; i < 4096; ++i) results += R"(, {"type": "tool_result", "tool_use_id": "a"})";
  EXPECT_EQ(refused_block("user", results), "messages");
  std::string list = "[1";
  for (int i = 0; i < 20'000; ++i) list += ",1";
  const std::string call =
      R"({"type": "tool_use", "id": "a", "name": "b", "input": {"c": )" + list + "]}}";
  EXPECT_EQ(refused_block("assistant", call), "nothing");
  EXPECT_EQ(refused_block("assistant", call + "," + call), "messages");
  EXPECT_EQ(refused_block("user", "5"), "messages[0].content[0]");
  EXPECT_EQ(refused_block("user", "{}"), "messages[0].content[0].type");
  EXPECT_EQ(refused_block("user", R"({"type": "text"})"), "messages[0].content[0].text");
  for (const char* const type :
       {"image", "document", "search_result", "tool_use", "thinking", "container_upload"}) {
    EXPECT_EQ(refused_block("user", std::string(R"({"type": ")") + type + "\"}"),
              "messages[0].content[0].type");
  }
  for (const char* const type : {"image", "tool_result", "server_tool_use", "redacted_thinking"}) {
    EXPECT_EQ(refused_block("assistant", std::string(R"({"type": ")") + type + "\"}"),
              "messages[0].content[0].type");
  }
  EXPECT_EQ(refused_block("user", R"({"type": "tool_result"})"),
            "messages[0].content[0].tool_use_id");
  EXPECT_EQ(refused_block("user", R"({"type": "tool_result", "tool_use_id": "a",
                                      "content": [{"type": "image"}]})"),
            "messages[0].content[0].content[0].type");
  EXPECT_EQ(
      refused_block("user", R"({"type": "tool_result", "tool_use_id": "a", "is_error": "yes"})"),
      "messages[0].content[0].is_error");
  EXPECT_EQ(refused_block("assistant", R"({"type": "tool_use", "name": "a"})"),
            "messages[0].content[0].id");
  EXPECT_EQ(refused_block("assistant", R"({"type": "tool_use", "id": "a"})"),
            "messages[0].content[0].name");
  EXPECT_EQ(
      refused_block("assistant", R"({"type": "tool_use", "id": "a", "name": "b", "input": [1]})"),
      "messages[0].content[0].input");
}

}  // namespace
}  // namespace cria::server
