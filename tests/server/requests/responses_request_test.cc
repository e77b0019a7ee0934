// How requests for responses are read.

#include "server/requests/responses_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/requests/request_error.h"
#include "server/requests/responses_items.h"

namespace cria::server {
namespace {

std::vector<ChatMessage> ReadInput(const std::string& request) {
  const Json json = Json::parse(request);
  return ReadResponsesInput(Fields(json));
}

ResponsesRequest ReadRequest(const std::string& members) {
  const Json json = Json::parse(R"({"input": "Who?", )" + members + "}");
  return ReadResponses(Fields(json));
}

// The field that is refused.
template <typename Function>
std::string RefusedBy(const Function& read) {
  try {
    read();
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_THAT(error.message(), testing::StartsWith(error.param()));
    return error.param();
  }
  return "nothing";
}
std::string RefusedInput(const std::string& items) {
  return RefusedBy([&] { ReadInput(R"({"input": )" + items + "}"); });
}
std::string RefusedRequest(const std::string& members) {
  return RefusedBy([&] { ReadRequest(members); });
}

TEST(ResponsesRequestTest, ATextIsTheUsersMessage) {
  const auto messages = ReadInput(R"({"input": "Who?"})");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].role, "user");
  EXPECT_EQ(messages[0].content, "Who?");
  const auto instructed = ReadInput(R"({"instructions": "Be brief.", "input": "Who?"})");
  ASSERT_EQ(instructed.size(), 2u);
  EXPECT_EQ(instructed[0].role, "system");
  EXPECT_EQ(instructed[0].content, "Be brief.");
}

TEST(ResponsesRequestTest, MessagesHaveRolesAndParts) {
  const auto messages = ReadInput(R"({"input": [
      {"role": "user", "content": [{"type": "input_text", "text": "a"},
                                   {"type": "input_text", "text": "b"}]},
      {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
       "content": [{"type": "output_text", "text": "c", "annotations": []}]},
      {"role": "assistant", "content": "d"},
      {"role": "developer", "content": "e"},
      {"role": "system", "content": "f"},
      {"role": "user", "content": ""}]})");
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0].content, "ab");
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(messages[1].content, "c");
  EXPECT_EQ(messages[1].fields, "");
  EXPECT_EQ(messages[2].content, "d");
  EXPECT_EQ(messages[3].role, "system");
  EXPECT_EQ(messages[3].content, "e");
  EXPECT_EQ(messages[4].content, "f");
  EXPECT_EQ(messages[5].role, "user");
}

TEST(ResponsesRequestTest, SystemMessagesAtTheBeginningAreOne) {
  const auto messages = ReadInput(R"({"instructions": "a", "input": [
      {"role": "developer", "content": "b"}, {"role": "system", "content": "c"},
      {"role": "user", "content": "d"}]})");
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[0].content, "a\n\nb\n\nc");
  const auto alone = ReadInput(R"({"input": [{"role": "developer", "content": "b"}]})");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].content, "b");
}

TEST(ResponsesRequestTest, AnAnswersItemsAreOneMessage) {
  const auto messages = ReadInput(R"({"input": [
      {"role": "user", "content": "Add."},
      {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "no"}],
       "content": [{"type": "reasoning_text", "text": "h"},
                   {"type": "reasoning_text", "text": "m"}], "encrypted_content": null},
      {"type": "message", "role": "assistant", "content": "Sure."},
      {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add",
       "arguments": "{\"a\": 1}", "status": "completed"},
      {"type": "function_call", "call_id": "c2", "name": "now", "arguments": ""},
      {"type": "function_call_output", "call_id": "c2", "output": "noon"},
      {"type": "function_call_output", "call_id": "c1",
       "output": [{"type": "input_text", "text": "3"}]},
      {"type": "function_call_output", "call_id": "c9", "output": ""},
      {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
      {"type": "function_call", "call_id": "c3", "name": "add", "arguments": "{"},
      {"type": "reasoning", "summary": []},
      {"role": "assistant", "content": "Three."}]})");
  ASSERT_EQ(messages.size(), 7u);
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(messages[1].content, "Sure.");
  EXPECT_EQ(messages[1].fields,
            R"({"tool_calls":[{"id":"c1","type":"function","function":{"name":"add",)"
            R"("arguments":{"a":1}}},{"id":"c2","type":"function","function":{"name":"now",)"
            R"("arguments":{}}}],"reasoning_content":"hm"})");
  EXPECT_EQ(messages[2].role, "tool");
  EXPECT_EQ(messages[2].content, "noon");
  EXPECT_EQ(messages[2].fields, R"({"tool_call_id":"c2","name":"now"})");
  EXPECT_EQ(messages[3].content, "3");
  EXPECT_EQ(messages[3].fields, R"({"tool_call_id":"c1","name":"add"})");
  EXPECT_EQ(messages[4].fields, R"({"tool_call_id":"c9"})");
  // Arguments that are no JSON are shown as they are, and reasoning begins another answer.
  EXPECT_EQ(messages[5].fields,
            R"({"tool_calls":[{"id":"c3","type":"function","function":{"name":"add",)"
            R"("arguments":"{"}}],"reasoning_content":"so"})");
  EXPECT_EQ(messages[6].content, "Three.");
  EXPECT_EQ(messages[6].fields, "");
}

TEST(ResponsesRequestTest, WhatIsWrongWithItemsIsRefusedByName) {
  EXPECT_EQ(RefusedBy([] { ReadInput("{}"); }), "input");
  EXPECT_EQ(RefusedBy([] { ReadInput(R"({"input": "a", "instructions": 5})"); }), "instructions");
  EXPECT_EQ(RefusedInput("5"), "input");
  EXPECT_EQ(RefusedInput("{}"), "input");
  EXPECT_EQ(RefusedInput("[]"), "input");
  EXPECT_EQ(RefusedInput("[5]"), "input[0]");
  EXPECT_EQ(RefusedInput(R"([{"role": "user", "content": "a"}, {}])"), "input[1].role");
  EXPECT_EQ(RefusedInput(R"([{"role": "tool", "content": "a"}])"), "input[0].role");
  EXPECT_EQ(RefusedInput(R"([{"role": "user"}])"), "input[0].content");
  EXPECT_EQ(RefusedInput(R"([{"role": "user", "content": 5}])"), "input[0].content");
  for (const char* const type : {"input_image", "input_file", "input_audio", "refusal"}) {
    EXPECT_EQ(RefusedInput(R"([{"role": "user", "content": [{"type": ")" + std::string(type) +
                           R"("}]}])"),
              "input[0].content[0].type");
  }
  for (const char* const type :
       {"item_reference", "web_search_call", "computer_call", "mcp_call", "custom_tool_call"}) {
    EXPECT_EQ(RefusedInput(R"([{"type": ")" + std::string(type) + R"(", "id": "a"}])"),
              "input[0].type");
  }
  EXPECT_EQ(RefusedInput(R"([{"type": "reasoning", "content": "a"}])"), "input[0].content");
  EXPECT_EQ(RefusedInput(R"([{"type": "reasoning", "content": [{"type": "x", "text": "a"}]}])"),
            "input[0].content[0].type");
  EXPECT_EQ(RefusedInput(R"([{"type": "reasoning", "summary": [{"type": "summary_text"}]}])"),
            "input[0].summary[0].text");
  std::string list = "[1";
  for (int i = 0; i < 20'000; ++i) list += ",1";
  const std::string call =
      R"({"type": "function_call", "call_id": "a", "name": "b", "arguments": ")" + list + "]\"}";
  EXPECT_EQ(RefusedInput("[" + call + "]"), "nothing");
  EXPECT_EQ(RefusedInput("[" + call + "," + call + "]"), "input");
  EXPECT_EQ(RefusedInput(R"([{"type": "function_call", "name": "a"}])"), "input[0].call_id");
  EXPECT_EQ(RefusedInput(R"([{"type": "function_call", "call_id": "a"}])"), "input[0].name");
  EXPECT_EQ(RefusedInput(R"([{"type": "function_call", "call_id": "a", "name": "b",
                              "arguments": {}}])"),
            "input[0].arguments");
  EXPECT_EQ(RefusedInput(R"([{"type": "function_call_output", "output": "a"}])"),
            "input[0].call_id");
  EXPECT_EQ(RefusedInput(R"([{"type": "function_call_output", "call_id": "a"}])"),
            "input[0].output");
  std::string many = "[";
  for (int i = 0; i < 4097; ++i)
    many += std::string(i > 0 ? "," : "") + R"({"role": "user",
      "content": ""})";
  EXPECT_EQ(RefusedInput(many + "]"), "input");
}

TEST(ResponsesRequestTest, ToolsAreFlat) {
  const ToolUse tools = ReadRequest(R"("tools": [
      {"type": "function", "name": "add", "description": "Adds.", "strict": true,
       "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
      {"type": "function", "name": "now", "parameters": null}], "parallel_tool_calls": false)")
                            .chat.tools;
  EXPECT_EQ(tools.choice, ToolUse::Choice::kAuto);
  EXPECT_FALSE(tools.is_parallel);
  ASSERT_EQ(tools.tools.size(), 2u);
  EXPECT_TRUE(tools.tools[0].is_strict);
  // Templates know the form of chat completions.
  EXPECT_EQ(tools.definitions[0],
            R"({"type":"function","function":{"name":"add","description":"Adds.","strict":true,)"
            R"("parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}})");
  const auto chosen = [](const std::string& choice) {
    return ReadRequest(R"("tools": [{"type": "function", "name": "a"},
        {"type": "function", "name": "b"}], "tool_choice": )" +
                       choice)
        .chat.tools;
  };
  EXPECT_EQ(chosen("\"none\"").choice, ToolUse::Choice::kNone);
  EXPECT_EQ(chosen("\"required\"").choice, ToolUse::Choice::kRequired);
  const ToolUse one = chosen(R"({"type": "function", "name": "b"})");
  EXPECT_EQ(one.choice, ToolUse::Choice::kRequired);
  ASSERT_EQ(one.tools.size(), 1u);
  EXPECT_EQ(one.tools[0].name, "b");
  const ToolUse allowed = chosen(R"({"type": "allowed_tools", "mode": "auto",
      "tools": [{"type": "function", "name": "a"}]})");
  EXPECT_EQ(allowed.choice, ToolUse::Choice::kAuto);
  ASSERT_EQ(allowed.tools.size(), 1u);
  EXPECT_EQ(allowed.definitions.size(), 2u);
}

TEST(ResponsesRequestTest, FormatsAreFlat) {
  const auto shape = [](const std::string& format) {
    return ReadRequest(R"("text": {"format": )" + format + "}").chat.options.shape;
  };
  EXPECT_EQ(shape(R"({"type": "text"})").kind, AnswerShape::Kind::kAny);
  EXPECT_EQ(shape(R"({"type": "json_object"})").kind, AnswerShape::Kind::kJsonObject);
  const AnswerShape schema =
      shape(R"({"type": "json_schema", "name": "a", "strict": true, "schema": {"type": "null"}})");
  EXPECT_EQ(schema.kind, AnswerShape::Kind::kJsonSchema);
  EXPECT_EQ(schema.text, R"({"type":"null"})");
  EXPECT_EQ(schema.field, "text.format.schema");
}

TEST(ResponsesRequestTest, FieldsAreRefusedByName) {
  struct Case {
    const char* members;
    const char* param;
  };
  const std::vector<Case> cases = {
      {R"("model": 5)", "model"},
      {R"("stream": 1)", "stream"},
      {R"("store": "x")", "store"},
      {R"("temperature": "x")", "temperature"},
      {R"("max_output_tokens": 0)", "max_output_tokens"},
      {R"("max_output_tokens": "x")", "max_output_tokens"},
      {R"("metadata": [])", "metadata"},
      {R"("metadata": {"a": 1})", "metadata.a"},
      {R"("include": ["x"])", "include"},
      {R"("include": {})", "include"},
      {R"("top_logprobs": 21, "include": ["message.output_text.logprobs"])", "top_logprobs"},
      {R"("top_logprobs": 1)", "top_logprobs"},
      {R"("text": 5)", "text"},
      {R"("text": {"format": 5})", "text.format"},
      {R"("text": {"format": {}})", "text.format.type"},
      {R"("text": {"format": {"type": "x"}})", "text.format.type"},
      {R"("text": {"format": {"type": "json_schema"}})", "text.format.schema"},
      {R"("text": {"verbosity": "high"})", "text.verbosity"},
      {R"("text": {"format": {"type": "json_object"}}, "grammar": "root ::= \"a\"")", "grammar"},
      {R"("reasoning": 5)", "reasoning"},
      {R"("tools": {})", "tools"},
      {R"("tools": [{"type": "web_search"}])", "tools[0].type"},
      {R"("tools": [{"type": "custom", "name": "a"}])", "tools[0].type"},
      {R"("tools": [{"type": "function"}])", "tools[0].name"},
      {R"("tools": [{"type": "function", "name": "a b"}])", "tools[0].name"},
      {R"("tools": [{"name": "a"}, {"name": "a"}])", "tools[1].name"},
      {R"("tools": [{"name": "a", "parameters": 5}])", "tools[0].parameters"},
      {R"("tool_choice": "required")", "tool_choice"},
      {R"("tool_choice": "x")", "tool_choice"},
      {R"("tool_choice": {"type": "file_search"})", "tool_choice.type"},
      {R"("tool_choice": {"type": "function"})", "tool_choice.name"},
      {R"("tool_choice": {"type": "function", "name": "x"})", "tool_choice.name"},
      {R"("tool_choice": {"type": "allowed_tools"})", "tool_choice.mode"},
      {R"("tool_choice": {"type": "allowed_tools", "mode": "auto"})", "tool_choice.tools"},
      {R"("stream_options": {})", "stream_options"},
      {R"("chat_template_kwargs": 5)", "chat_template_kwargs"},
  };
  for (const Case& tested : cases) EXPECT_EQ(RefusedRequest(tested.members), tested.param);
}

TEST(ResponsesRequestTest, LongValuesAreNotRepeated) {
  const Json repeated = ReadRequest(R"("instructions": "Be brief.", "metadata": {"a": "b"},
      "max_output_tokens": 5, "temperature": 0.5, "tools": [{"name": "a"}],
      "text": {"format": {"type": "json_object"}})")
                            .repeated;
  EXPECT_EQ(repeated["instructions"], "Be brief.");
  EXPECT_EQ(repeated["metadata"], Json::parse(R"({"a": "b"})"));
  EXPECT_EQ(repeated["max_output_tokens"], 5);
  EXPECT_EQ(repeated["temperature"], 0.5);
  EXPECT_EQ(repeated["tools"], Json::parse(R"([{"name": "a", "type": "function"}])"));
  EXPECT_EQ(repeated["text"]["format"]["type"], "json_object");
  const std::string text(kMaxRepeatedBytes + 1, 'a');
  const Json large = ReadRequest(R"("instructions": ")" + text + R"(", "metadata": {"a": ")" +
                                 text + R"("}, "tools": [{"name": "a", "description": ")" + text +
                                 R"("}], "user": ")" + text + "\"")
                         .repeated;
  EXPECT_LT(Written(large).size(), kMaxRepeatedBytes);
  EXPECT_EQ(large["instructions"], nullptr);
  EXPECT_EQ(large["metadata"], Json::object());
  EXPECT_EQ(large["tools"], Json::array());
}

}  // namespace
}  // namespace cria::server
