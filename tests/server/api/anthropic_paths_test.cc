// POST /v1/messages and /v1/messages/count_tokens

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class AnthropicPathsTest : public ApiTest {
 protected:
  static constexpr const char* kPath = "/v1/messages";

  static Json Message(const std::string& question = "Who?", size_t max_tokens = 12) {
    return Chat(question, max_tokens);
  }

  using Event = RecordedAnswer::Event;
};

TEST_F(AnthropicPathsTest, AnswersAsASessionAloneDoes) {
  const auto answer = Post(kPath, Message("Who are you?", 5));
  ASSERT_EQ(answer->status, 200) << answer->body;
  const Json json = answer->json();
  EXPECT_THAT(std::string(json["id"]), StartsWith("msg_"));
  EXPECT_EQ(json["type"], "message");
  EXPECT_EQ(json["role"], "assistant");
  EXPECT_EQ(json["model"], "tiny");
  ASSERT_EQ(json["content"].size(), 1u);
  EXPECT_EQ(json["content"][0]["type"], "text");
  EXPECT_EQ(json["content"][0]["text"], Alone(Rendered("Who are you?"), 5));
  EXPECT_EQ(json["stop_reason"], "max_tokens");
  EXPECT_TRUE(json["stop_sequence"].is_null());
  EXPECT_EQ(json["usage"]["output_tokens"], 5);
  EXPECT_GT(json["usage"]["input_tokens"], 0);
}

TEST_F(AnthropicPathsTest, StreamsTheSame) {
  Json request = Message("Who are you?", 20);
  const Json whole = Post(kPath, request)->json();
  request["stream"] = true;
  const auto answer = Post(kPath, request);
  EXPECT_EQ(answer->content_type, "text/event-stream");
  const auto events = answer->events();
  ASSERT_GE(events.size(), 7u);
  EXPECT_EQ(events[0].name, "message_start");
  const Json& message = events[0].data["message"];
  EXPECT_EQ(message["content"], Json::array());
  EXPECT_TRUE(message["stop_reason"].is_null());
  EXPECT_EQ(events[1].name, "ping");
  EXPECT_EQ(events[2].data, Json::parse(R"({"type": "content_block_start", "index": 0,
      "content_block": {"type": "text", "text": ""}})"));
  std::string text;
  for (size_t i = 3; i + 3 < events.size(); ++i) {
    EXPECT_EQ(events[i].name, "content_block_delta");
    EXPECT_EQ(events[i].data["delta"]["type"], "text_delta");
    text += events[i].data["delta"]["text"];
  }
  EXPECT_EQ(whole["content"][0]["text"], text);
  EXPECT_EQ(events[events.size() - 3].data,
            Json::parse(R"({"type": "content_block_stop", "index": 0})"));
  const Json& end = events[events.size() - 2].data;
  EXPECT_EQ(end["type"], "message_delta");
  EXPECT_EQ(end["delta"]["stop_reason"], whole["stop_reason"]);
  EXPECT_EQ(end["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
  // What was cached differs, but not the sum.
  const auto prompt_tokens = [](const Json& usage) {
    return usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>();
  };
  EXPECT_EQ(prompt_tokens(end["usage"]), prompt_tokens(whole["usage"]));
  EXPECT_EQ(message["usage"]["input_tokens"], end["usage"]["input_tokens"]);
  EXPECT_GT(end["usage"]["cache_read_input_tokens"], 0);
  EXPECT_EQ(events.back().name, "message_stop");
}

TEST_F(AnthropicPathsTest, TheSystemPromptIsItsOwnField) {
  Json request = Message();
  request["system"] = Json::parse(R"([{"type": "text", "text": "Be "}, {"type": "text", "text":
      "brief.", "cache_control": {"type": "ephemeral"}}])");
  Json chat = Chat();
  chat["messages"].insert(chat["messages"].begin(),
                          Json{{"role", "system"}, {"content", "Be brief."}});
  EXPECT_EQ(Post(kPath, request)->json()["content"][0]["text"],
            Post("/v1/chat/completions", chat)->json()["choices"][0]["message"]["content"]);
}

TEST_F(AnthropicPathsTest, AStopSequenceIsNamed) {
  const std::string text = Alone(Rendered("Who?"), 12);
  // Whole characters of it.
  size_t at = 1;
  while (!(std::isalnum(static_cast<unsigned char>(text[at])) != 0 &&
           std::isalnum(static_cast<unsigned char>(text[at + 1])) != 0)) {
    ASSERT_LT(++at + 1, text.size()) << text;
  }
  const std::string stop = text.substr(at, 2);
  Json request = Message();
  request["stop_sequences"] = {"not in it", stop};
  const Json json = Post(kPath, request)->json();
  EXPECT_EQ(json["content"][0]["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(json["stop_reason"], "stop_sequence");
  EXPECT_EQ(json["stop_sequence"], stop);
}

TEST_F(AnthropicPathsTest, ToolsAreCalled) {
  Json request = Message("Add.", 300);
  request["tools"] = Json::parse(R"([{"name": "add", "description": "Adds.", "input_schema":
      {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
       "additionalProperties": false}}])");
  request["tool_choice"] = {{"type", "tool"}, {"name", "add"}};
  const Json json = Post(kPath, request)->json();
  EXPECT_EQ(json["stop_reason"], "tool_use") << json;
  ASSERT_EQ(json["content"].size(), 1u);
  const Json& call = json["content"][0];
  EXPECT_EQ(call["type"], "tool_use");
  EXPECT_EQ(call["name"], "add");
  EXPECT_TRUE(call["input"].contains("a"));

  request["stream"] = true;
  std::string arguments;
  const auto events = Post(kPath, request)->events();
  ASSERT_GE(events.size(), 7u);
  EXPECT_EQ(events[2].data["content_block"]["type"], "tool_use");
  EXPECT_EQ(events[2].data["content_block"]["input"], Json::object());
  for (const Event& event : events) {
    if (event.name != "content_block_delta") continue;
    EXPECT_EQ(event.data["delta"]["type"], "input_json_delta");
    arguments += event.data["delta"]["partial_json"];
  }
  EXPECT_EQ(Json::parse(arguments), call["input"]);

  // The template reads them as it reads those of OpenAI's form, and the results.
  request["stream"] = false;
  request["tool_choice"] = {{"type", "any"}, {"disable_parallel_tool_use", true}};
  request["messages"].push_back({{"role", "assistant"}, {"content", json["content"]}});
  request["messages"].push_back(
      {{"role", "user"},
       {"content", {{{"type", "tool_result"}, {"tool_use_id", call["id"]}, {"content", "3"}}}}});
  EXPECT_EQ(Post(kPath, request)->json()["stop_reason"], "tool_use");
}

TEST_F(AnthropicPathsTest, ArgumentsKeepAllDigits) {
  const std::string numbers = "[9007199254740993,123456789012345678901,0.1234567890123456789012]";
  const std::string request =
      R"({"max_tokens": 300, "messages": [{"role": "user", "content": "Add."}], "tools": [{"name":
      "add", "input_schema": {"type": "object", "properties": {"a": {"const": )" +
      numbers + R"(}}, "required": ["a"], "additionalProperties": false}}],
      "tool_choice": {"type": "tool", "name": "add"}})";
  const auto answer = Post(kPath, ReadJsonText(request, "the request"));
  ASSERT_EQ(answer->status, 200) << answer->body;
  EXPECT_THAT(answer->body, testing::HasSubstr(R"("input":{"a":)" + numbers + "}"));
}

TEST_F(AnthropicPathsTest, AnAnswerGoesOnWithItsBeginning) {
  const std::string whole = Alone(Rendered("Who?"), 30);
  const std::string beginning = "Cria";
  Json request = Message("Who?", 20);
  request["messages"].push_back({{"role", "assistant"}, {"content", beginning}});
  const auto answer = Post(kPath, request);
  ASSERT_EQ(answer->status, 200) << answer->body;
  EXPECT_EQ(answer->json()["content"][0]["text"], Alone("[user]Who?[assistant]" + beginning, 20));
}

TEST_F(AnthropicPathsTest, CountsTokensAsTheyAreRead) {
  Json request = Message("Who are you?");
  request["system"] = "Be brief.";
  const Json usage = Post(kPath, request)->json()["usage"];
  request.erase("max_tokens");
  const auto counted = Post("/v1/messages/count_tokens", request);
  ASSERT_EQ(counted->status, 200) << counted->body;
  EXPECT_EQ(counted->json(),
            Json({{"input_tokens", usage["input_tokens"].get<int>() +
                                       usage["cache_read_input_tokens"].get<int>()}}));
  // Also of more than the context.
  request["messages"][0]["content"] = std::string(3 * kContextTokens, 'x') + "?";
  EXPECT_GT(Post("/v1/messages/count_tokens", request)->json()["input_tokens"], kContextTokens);
  EXPECT_EQ(Post(kPath, Message(std::string(3 * kContextTokens, 'x')))->status, 400);
}

TEST_F(AnthropicPathsTest, ReasoningIsABlockOfItsOwn) {
  Json request = Message("Who?", 8);
  request["thinking"] = {{"type", "enabled"}, {"budget_tokens", 1024}};
  const Json json = Post(kPath, request)->json();
  ASSERT_EQ(json["content"].size(), 1u) << json;
  EXPECT_EQ(json["content"][0]["type"], "thinking");
  EXPECT_NE(json["content"][0]["thinking"], "");
  request["stream"] = true;
  const auto events = Post(kPath, request)->events();
  EXPECT_EQ(events[3].data["delta"]["type"], "thinking_delta");
  request["thinking"] = {{"type", "disabled"}};
  request["stream"] = false;
  EXPECT_EQ(Post(kPath, request)->json()["content"][0]["type"], "text");
}

TEST_F(AnthropicPathsTest, AnswersMayMatchASchema) {
  Json request = Message("Who?", 200);
  request["output_config"] = Json::parse(R"({"format": {"type": "json_schema", "schema":
      {"enum": [{"a": 1}, {"a": 2}]}}})");
  const Json json = Post(kPath, request)->json();
  EXPECT_TRUE(Json::parse(std::string(json["content"][0]["text"])).contains("a")) << json;
}

TEST_F(AnthropicPathsTest, ErrorsHaveAnthropicsForm) {
  const auto refused = [&](const std::string& pointer, const char* value) {
    Json request = Message();
    request["tools"] = Json::parse(R"([{"name": "f", "input_schema": {"type": "object"}}])");
    request[Json::json_pointer(pointer)] = Json::parse(value);
    const auto answer = Post(kPath, request);
    EXPECT_EQ(answer->status, 400) << pointer << ": " << value;
    const Json json = answer->json();
    EXPECT_EQ(json["type"], "error");
    EXPECT_EQ(json["error"]["type"], "invalid_request_error");
    return std::string(json["error"]["message"]);
  };
  EXPECT_THAT(refused("/max_tokens", "null"), StartsWith("max_tokens is missing"));
  EXPECT_THAT(refused("/max_tokens", "0"), StartsWith("max_tokens is 0"));
  EXPECT_THAT(refused("/temperature", "\"x\""), StartsWith("temperature is not a number"));
  EXPECT_THAT(refused("/system", "5"), StartsWith("system is neither"));
  EXPECT_THAT(refused("/system", R"([{"type": "image"}])"), StartsWith("system[0].type is"));
  EXPECT_THAT(refused("/stop_sequences", "[5]"), StartsWith("stop_sequences[0]"));
  EXPECT_THAT(refused("/stream", "1"), StartsWith("stream is neither"));
  EXPECT_THAT(refused("/tools", "{}"), StartsWith("tools is not a list"));
  EXPECT_THAT(refused("/tools/0", R"({"type": "bash_20250124", "name": "bash"})"),
              StartsWith("tools[0].type is \"bash_20250124\""));
  EXPECT_THAT(refused("/tools/0/name", "\"a b\""), StartsWith("tools[0].name must"));
  EXPECT_THAT(refused("/tools/0/input_schema", "null"), StartsWith("tools[0].input_schema is mis"));
  EXPECT_THAT(refused("/tools/0/input_schema", "5"), StartsWith("tools[0].input_schema is not"));
  EXPECT_THAT(refused("/tools/1", R"({"name": "f", "input_schema": {}})"),
              StartsWith("tools[1].name \"f\" is there twice"));
  EXPECT_THAT(refused("/tool_choice", "\"any\""), StartsWith("tool_choice is not an object"));
  EXPECT_THAT(refused("/tool_choice", R"({"type": "x"})"), StartsWith("tool_choice.type is not"));
  EXPECT_THAT(refused("/tool_choice", R"({"type": "tool", "name": "g"})"),
              StartsWith("tool_choice.name is \"g\""));
  EXPECT_THAT(refused("/thinking", R"({"type": "x"})"), StartsWith("thinking.type is not"));
  EXPECT_THAT(refused("/thinking", R"({"type": "enabled", "budget_tokens": 0})"),
              StartsWith("thinking.budget_tokens must"));
  EXPECT_THAT(refused("/output_config", R"({"format": {"type": "xml"}})"),
              StartsWith("output_config.format.type is not"));
  EXPECT_THAT(refused("/output_config", R"({"format": {"type": "json_schema"}})"),
              StartsWith("output_config.format.schema is missing"));
  EXPECT_THAT(refused("/output_config", R"({"effort": "low"})"),
              StartsWith("output_config.effort is not supported"));
  EXPECT_THAT(refused("/mcp_servers", "[{}]"), StartsWith("mcp_servers is not supported"));
  EXPECT_THAT(refused("/messages/1", R"({"role": "assistant", "content": ""})"),
              StartsWith("messages[1].content has no text"));
  EXPECT_THAT(refused("/messages/1", R"({"role": "assistant", "content": [
                                          {"type": "tool_use", "id": "a", "name": "f"}]})"),
              StartsWith("messages[1].content has no text"));
  const auto wrong = Begin("POST", kPath, "{");
  wrong->AwaitEnd();
  EXPECT_EQ(wrong->json()["error"]["type"], "invalid_request_error");
}

// Every value of a wrong type ends with a status, never with the process.
TEST_F(AnthropicPathsTest, WrongTypesEverywhere) {
  const Json request = Json::parse(R"({"model": "x", "max_tokens": 1, "temperature": 0, "system":
      [{"type": "text", "text": "a"}], "messages": [{"role": "user", "content": [{"type": "text",
      "text": "a"}]}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t",
      "signature": ""}, {"type": "tool_use", "id": "i", "name": "f", "input": {"a": 1}}]}, {"role":
      "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text",
      "text": "r"}], "is_error": true}]}], "tools": [{"type": "custom", "name": "f", "description":
      "d", "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}}}],
      "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}, "stop_sequences": ["s"],
      "top_k": 5, "top_p": 0.5, "thinking": {"type": "enabled", "budget_tokens": 5}, "metadata":
      {"user_id": "u"}, "stream": false})");
  const auto good = Post(kPath, request);
  ASSERT_EQ(good->status, 200) << good->body;
  const Json flat = request.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    for (const char* const wrong : {"null", "true", "-1", "1e308", "\"\"", "[]", "[[]]", "{}",
                                    R"({"a": {}})", "\"\\u0000\""}) {
      Json changed = request;
      changed[Json::json_pointer(pointer)] = Json::parse(wrong);
      const int status = Post(kPath, changed)->status;
      EXPECT_TRUE(status == 200 || status == 400) << pointer << ": " << wrong << ": " << status;
    }
  }
  std::string deep = R"({"max_tokens": 1, "messages": )";
  for (int i = 0; i < 5000; ++i) deep += R"([{"content":)";
  const auto answer = Begin("POST", kPath, deep);
  answer->AwaitEnd();
  EXPECT_EQ(answer->status, 400);
}

TEST_F(AnthropicPathsTest, OpenAiClientsMayGoOnWithAnAnswer) {
  Json request = Chat("Who?", 20);
  request["messages"].push_back({{"role", "assistant"}, {"content", "Cria"}});
  request["continue_final_message"] = true;
  request["add_generation_prompt"] = false;
  const auto answer = Post("/v1/chat/completions", request);
  ASSERT_EQ(answer->status, 200) << answer->body;
  EXPECT_EQ(answer->json()["choices"][0]["message"]["content"],
            Alone("[user]Who?[assistant]Cria", 20));
  EXPECT_EQ(Post("/apply-template", request)->json()["prompt"], "[user]Who?[assistant]Cria");
  const auto refused = [&](const char* field, const Json& value) {
    Json changed = request;
    changed[field] = value;
    const auto error = Post("/v1/chat/completions", changed);
    EXPECT_EQ(error->status, 400);
    return std::string(error->json()["error"]["param"]);
  };
  EXPECT_EQ(refused("add_generation_prompt", true), "add_generation_prompt");
  EXPECT_EQ(refused("continue_final_message", false), "add_generation_prompt");
  EXPECT_EQ(refused("continue_final_message", "x"), "continue_final_message");
  EXPECT_EQ(refused("messages", Json::parse(R"([{"role": "user", "content": "a"}])")),
            "messages[0].role");
  EXPECT_EQ(refused("messages", Json::parse(R"([{"role": "assistant", "content": ""}])")),
            "messages[0].content");
}

}  // namespace
}  // namespace cria::server
