// POST /v1/responses

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ResponsesPathTest : public ApiTest {
 protected:
  static constexpr const char* kPath = "/v1/responses";
  using Event = RecordedAnswer::Event;

  explicit ResponsesPathTest(size_t num_sequences = 2, size_t max_waiting = 8)
      : ApiTest(num_sequences, max_waiting) {}

  static Json Request(const std::string& question = "Who?", size_t max_tokens = 12) {
    return {{"model", "tiny"},
            {"input", question},
            {"temperature", 0},
            {"max_output_tokens", max_tokens}};
  }
  static Json AddTool() {
    return Json::parse(R"({"type": "function", "name": "add", "description": "Adds.",
        "parameters": {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
                       "additionalProperties": false}})");
  }

  Json Ok(const Json& request) {
    const auto answer = Post(kPath, request);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->json();
  }
  // The events of a stream, whose numbers must be in order.
  std::vector<Event> Stream(Json request) {
    request["stream"] = true;
    const auto answer = Post(kPath, request);
    EXPECT_EQ(answer->content_type, "text/event-stream") << answer->body;
    std::vector<Event> events = answer->events();
    for (size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].data["sequence_number"], i) << events[i].name;
    }
    return events;
  }
  static std::vector<std::string> NamesOf(const std::vector<Event>& events) {
    std::vector<std::string> names;
    for (const Event& event : events) {
      if (names.empty() || names.back() != event.name) names.push_back(event.name);
    }
    return names;
  }
  static std::string Joined(const std::vector<Event>& events, const std::string& name) {
    std::string text;
    for (const Event& event : events) {
      if (event.name == name) text += event.data["delta"];
    }
    return text;
  }
  static Json LastResponse(const std::vector<Event>& events) {
    return events.back().data["response"];
  }
};

TEST_F(ResponsesPathTest, AnswersAsASessionAloneDoes) {
  const Json json = Ok(Request("Who are you?", 5));
  EXPECT_THAT(std::string(json["id"]), StartsWith("resp_"));
  EXPECT_EQ(json["object"], "response");
  EXPECT_EQ(json["model"], "tiny");
  ASSERT_EQ(json["output"].size(), 1u);
  const Json& item = json["output"][0];
  EXPECT_THAT(std::string(item["id"]), StartsWith("msg_"));
  EXPECT_EQ(item["type"], "message");
  EXPECT_EQ(item["role"], "assistant");
  EXPECT_EQ(item["status"], "incomplete");
  const Json part = {{"type", "output_text"},
                     {"annotations", Json::array()},
                     {"logprobs", Json::array()},
                     {"text", Alone(Rendered("Who are you?"), 5)}};
  EXPECT_EQ(item["content"], Json::array({part}));
  EXPECT_EQ(json["status"], "incomplete");
  EXPECT_EQ(json["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_FALSE(json.contains("completed_at"));
  const Json& usage = json["usage"];
  EXPECT_EQ(usage["output_tokens"], 5);
  EXPECT_EQ(usage["output_tokens_details"]["reasoning_tokens"], 0);
  EXPECT_EQ(usage["total_tokens"].get<int>(), usage["input_tokens"].get<int>() + 5);
  EXPECT_EQ(Post("/responses", Request("Who are you?", 5))->json()["output"][0]["content"],
            item["content"]);
}

TEST_F(ResponsesPathTest, RepeatsWhatItHasObeyed) {
  Json request = Request();
  request["instructions"] = "Be brief.";
  request["metadata"] = {{"a", "b"}};
  request["store"] = true;
  request["tools"] = Json::array({AddTool()});
  request["tool_choice"] = "none";
  const Json json = Ok(request);
  EXPECT_EQ(json["instructions"], "Be brief.");
  EXPECT_EQ(json["metadata"], request["metadata"]);
  EXPECT_EQ(json["tools"], request["tools"]);
  EXPECT_EQ(json["tool_choice"], "none");
  EXPECT_EQ(json["temperature"], 0);
  EXPECT_EQ(json["max_output_tokens"], 12);
  EXPECT_EQ(json["parallel_tool_calls"], true);
  EXPECT_EQ(json["text"]["format"]["type"], "text");
  // Nothing is stored, whatever is asked for.
  EXPECT_EQ(json["store"], false);
}

TEST_F(ResponsesPathTest, AConversationIsThatOfAChat) {
  Json request = Request("Two?");
  request["instructions"] = "Be brief.";
  request["input"] = Json::parse(R"([{"role": "user", "content": "One?"},
      {"role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
      {"role": "user", "content": [{"type": "input_text", "text": "Two?"}]}])");
  Json chat = Chat();
  chat["messages"] = Json::parse(R"([{"role": "system", "content": "Be brief."},
      {"role": "user", "content": "One?"}, {"role": "assistant", "content": "Yes."},
      {"role": "user", "content": "Two?"}])");
  const Json answered = Ok(request);
  EXPECT_EQ(answered["output"][0]["content"][0]["text"],
            Post("/v1/chat/completions", chat)->json()["choices"][0]["message"]["content"]);
  // The second time, all but the last token of the prompt is there.
  EXPECT_EQ(Ok(request)["usage"]["input_tokens_details"]["cached_tokens"].get<int>(),
            answered["usage"]["input_tokens"].get<int>() - 1);
}

TEST_F(ResponsesPathTest, StreamsTheSame) {
  const Json whole = Ok(Request("Who are you?", 20));
  const auto events = Stream(Request("Who are you?", 20));
  EXPECT_EQ(NamesOf(events),
            (std::vector<std::string>{"response.created", "response.in_progress",
                                      "response.output_item.added", "response.content_part.added",
                                      "response.output_text.delta", "response.output_text.done",
                                      "response.content_part.done", "response.output_item.done",
                                      "response." + std::string(whole["status"])}));
  const Json& created = events[0].data["response"];
  EXPECT_EQ(created["status"], "in_progress");
  EXPECT_EQ(created["output"], Json::array());
  EXPECT_EQ(created["usage"], nullptr);
  const std::string text = whole["output"][0]["content"][0]["text"];
  EXPECT_EQ(text, Joined(events, "response.output_text.delta"));
  const Json& item = events[2].data["item"];
  EXPECT_EQ(item["status"], "in_progress");
  EXPECT_EQ(item["content"], Json::array());
  for (size_t i = 3; i + 2 < events.size(); ++i) {
    EXPECT_EQ(events[i].data["item_id"], item["id"]);
    EXPECT_EQ(events[i].data["output_index"], 0);
    EXPECT_EQ(events[i].data["content_index"], 0);
  }
  EXPECT_EQ(events[events.size() - 4].data["text"], text);
  EXPECT_EQ(events[events.size() - 3].data["part"], whole["output"][0]["content"][0]);
  Json ended = LastResponse(events);
  EXPECT_EQ(ended["id"], created["id"]);
  EXPECT_EQ(ended["output"], Json::array({events[events.size() - 2].data["item"]}));
  EXPECT_EQ(ended["output"][0]["id"], item["id"]);
  // But for what is random or cached, it is what is sent as a whole.
  ended["output"][0]["id"] = whole["output"][0]["id"];
  EXPECT_EQ(ended["output"], whole["output"]);
  EXPECT_EQ(ended["incomplete_details"], whole["incomplete_details"]);
  EXPECT_EQ(ended["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
  EXPECT_GT(ended["usage"]["input_tokens_details"]["cached_tokens"], 0);
}

TEST_F(ResponsesPathTest, ToolsAreCalledAndAnswered) {
  Json request = Request("Add.", 300);
  request["tools"] = Json::array({AddTool()});
  request["tool_choice"] = {{"type", "function"}, {"name", "add"}};
  const Json json = Ok(request);
  EXPECT_EQ(json["status"], "completed");
  EXPECT_GT(json["completed_at"], 0);
  ASSERT_EQ(json["output"].size(), 1u) << json;
  const Json& call = json["output"][0];
  EXPECT_THAT(std::string(call["id"]), StartsWith("fc_"));
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["status"], "completed");
  EXPECT_EQ(call["name"], "add");
  EXPECT_TRUE(Json::parse(std::string(call["arguments"])).contains("a"));

  const auto events = Stream(request);
  EXPECT_EQ(NamesOf(events),
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added",
                "response.function_call_arguments.delta", "response.function_call_arguments.done",
                "response.output_item.done", "response.completed"}));
  const Json& added = events[2].data["item"];
  EXPECT_EQ(added["name"], "add");
  EXPECT_EQ(added["arguments"], "");
  EXPECT_EQ(call["arguments"], Joined(events, "response.function_call_arguments.delta"));
  EXPECT_EQ(events[events.size() - 3].data["arguments"], call["arguments"]);
  EXPECT_EQ(events[events.size() - 2].data["item"]["call_id"], added["call_id"]);
  EXPECT_EQ(LastResponse(events)["output"][0]["arguments"], call["arguments"]);

  // What was answered, and the result, are the next request's input.
  request["tool_choice"] = "auto";
  request["input"] = Json::array({{{"role", "user"}, {"content", "Add."}}, call});
  request["input"].push_back(
      {{"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "3"}});
  Json chat = Chat("Add.", 300);
  chat["tools"] = Json::parse(R"([{"type": "function"}])");
  chat["tools"][0]["function"] = AddTool();
  chat["tools"][0]["function"].erase("type");
  chat["messages"].push_back(
      {{"role", "assistant"},
       {"content", ""},
       {"tool_calls",
        Json::array({{{"id", call["call_id"]},
                      {"type", "function"},
                      {"function", {{"name", "add"}, {"arguments", call["arguments"]}}}}})}});
  chat["messages"].push_back(
      {{"role", "tool"}, {"tool_call_id", call["call_id"]}, {"content", "3"}});
  const Json usage = Post("/v1/chat/completions", chat)->json()["usage"];
  EXPECT_EQ(Ok(request)["usage"]["input_tokens"], usage["prompt_tokens"]);
}

TEST_F(ResponsesPathTest, CallsThatAreCutOffAreIncomplete) {
  Json request = Request("Add.", 8);
  request["tools"] = Json::array({AddTool()});
  request["tools"][0]["parameters"]["properties"]["a"] = {
      {"const", "a text that takes more tokens than there may be"}};
  request["tool_choice"] = "required";
  const Json json = Ok(request);
  EXPECT_EQ(json["status"], "incomplete");
  EXPECT_EQ(json["output"].back()["status"], "incomplete");
  EXPECT_EQ(Stream(request).back().name, "response.incomplete");
}

TEST_F(ResponsesPathTest, ReasoningIsAnItemOfItsOwn) {
  Json request = Request("Who?", 8);
  request["reasoning"] = {{"effort", "low"}, {"summary", "auto"}};
  const Json json = Ok(request);
  ASSERT_EQ(json["output"].size(), 1u) << json;
  const Json& item = json["output"][0];
  EXPECT_THAT(std::string(item["id"]), StartsWith("rs_"));
  EXPECT_EQ(item["type"], "reasoning");
  EXPECT_EQ(item["summary"], Json::array());
  EXPECT_EQ(item["content"][0]["type"], "reasoning_text");
  EXPECT_EQ(json["usage"]["output_tokens_details"]["reasoning_tokens"], 8);
  EXPECT_EQ(json["reasoning"]["effort"], "low");
  const auto events = Stream(request);
  EXPECT_EQ(NamesOf(events),
            (std::vector<std::string>{"response.created", "response.in_progress",
                                      "response.output_item.added", "response.content_part.added",
                                      "response.reasoning_text.delta",
                                      "response.reasoning_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.incomplete"}));
  EXPECT_EQ(item["content"][0]["text"], Joined(events, "response.reasoning_text.delta"));
  EXPECT_EQ(LastResponse(events)["output"][0]["content"], item["content"]);

  // Behind it, the answer has a place of its own.
  request["max_output_tokens"] = 30;
  request["reasoning_budget"] = 4;
  const auto both = Stream(request);
  const Json output = LastResponse(both)["output"];
  ASSERT_EQ(output.size(), 2u) << output;
  EXPECT_EQ(output[0]["status"], "completed");
  EXPECT_EQ(output[1]["type"], "message");
  EXPECT_EQ(output[1]["content"][0]["text"], Joined(both, "response.output_text.delta"));
  EXPECT_EQ(both[both.size() - 2].data["output_index"], 1);
  EXPECT_EQ(LastResponse(both)["usage"]["output_tokens_details"]["reasoning_tokens"], 4);
  request["reasoning"] = {{"effort", "none"}};
  EXPECT_EQ(Ok(request)["output"][0]["type"], "message");
}

TEST_F(ResponsesPathTest, AnswersMatchAFormat) {
  Json request = Request("Who?", 200);
  request["text"] = Json::parse(R"({"format": {"type": "json_schema", "name": "a", "schema":
      {"enum": [{"a": 1}, {"a": 2}]}}})");
  const Json json = Ok(request);
  EXPECT_TRUE(Json::parse(std::string(json["output"][0]["content"][0]["text"])).contains("a"));
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["text"]["format"], request["text"]["format"]);
  request["text"] = {{"format", {{"type", "json_object"}}}};
  request["max_output_tokens"] = 1500;
  const Json object = Ok(request);
  if (object["status"] == "completed") {
    EXPECT_TRUE(Json::parse(std::string(object["output"][0]["content"][0]["text"])).is_object());
  }
}

TEST_F(ResponsesPathTest, LogProbabilities) {
  Json request = Request("Who?", 30);
  request["include"] = {"message.output_text.logprobs", "reasoning.encrypted_content"};
  request["top_logprobs"] = 2;
  const Json json = Ok(request);
  const Json& part = json["output"][0]["content"][0];
  ASSERT_EQ(part["logprobs"].size(), json["usage"]["output_tokens"]);
  EXPECT_EQ(part["logprobs"][0]["top_logprobs"].size(), 2u);
  Json plain = Request("Who?", 30);
  EXPECT_EQ(part["text"], Ok(plain)["output"][0]["content"][0]["text"]);
  Json streamed = Json::array();
  for (const Event& event : Stream(request)) {
    if (event.name != "response.output_text.delta") continue;
    for (const Json& token : event.data["logprobs"]) streamed.push_back(token);
  }
  ASSERT_EQ(streamed.size(), part["logprobs"].size());
  for (size_t i = 0; i < streamed.size(); ++i) {
    EXPECT_EQ(streamed[i]["token"], part["logprobs"][i]["token"]);
  }
}

TEST_F(ResponsesPathTest, AnAnswerWithoutTextHasAMessage) {
  Json request = Request();
  request["grammar"] = "root ::= \"\"";
  const Json json = Ok(request);
  EXPECT_EQ(json["status"], "completed");
  ASSERT_EQ(json["output"].size(), 1u);
  EXPECT_EQ(json["output"][0]["content"][0]["text"], "");
  EXPECT_EQ(LastResponse(Stream(request))["output"].size(), 1u);
}

// The grammar is small enough to be read, but what it becomes is not.
TEST_F(ResponsesPathTest, AnAnswerThatFailsIsToldInItsStream) {
  std::string grammar = "root ::= ";
  for (int i = 0; i < 4000; ++i) grammar += "\"a\"? ";
  Json request = Request();
  request["grammar"] = grammar + "\"b\"";
  EXPECT_EQ(Post(kPath, request)->status, 400);
  const auto events = Stream(request);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().name, "response.failed");
  const Json failed = LastResponse(events);
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_EQ(failed["error"]["code"], "invalid_prompt");
  EXPECT_NE(failed["error"]["message"], "");
  EXPECT_EQ(failed["id"], events[0].data["response"]["id"]);
}

TEST_F(ResponsesPathTest, AServerThatEndsSaysSo) {
  const auto answer = BeginStream(kPath, Request("Who?", 1900));
  work_.Close(std::chrono::milliseconds(0));
  const auto events = answer->events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().name, "error");
  EXPECT_EQ(events.back().data["code"], "shutting_down");
  EXPECT_EQ(events.back().data["sequence_number"], events.size() - 1);
}

TEST_F(ResponsesPathTest, AClientThatLeavesStopsItsAnswer) {
  const auto answer = BeginStream(kPath, Request("Who?", 1900));
  answer->Leave();
  // Its thread becomes free: both of them can answer.
  const auto one = Begin("POST", kPath, Written(Request()));
  const auto two = Begin("POST", kPath, Written(Request()));
  one->AwaitEnd();
  two->AwaitEnd();
  work_.Close(std::chrono::hours(1));
  EXPECT_EQ(one->status, 200);
  EXPECT_THAT(answer->body, testing::Not(HasSubstr("response.incomplete")));
}

class BusyResponsesTest : public ResponsesPathTest {
 protected:
  BusyResponsesTest() : ResponsesPathTest(1, 1) {}
};

TEST_F(BusyResponsesTest, AFullQueueIsTold) {
  const auto answer = BeginStream(kPath, Request("Who?", 1900));
  const auto waiting = Begin("POST", kPath, Written(Request()));
  const auto refused = Post(kPath, Request());
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->json()["error"]["code"], "queue_full");
  answer->Leave();
  waiting->AwaitEnd();
  EXPECT_EQ(waiting->status, 200);
}

TEST_F(ResponsesPathTest, WhatItDoesNotObeyIsRefusedByName) {
  const auto refused = [&](const std::string& name, const char* value) {
    Json request = Request();
    request[name] = Json::parse(value);
    const auto answer = Post(kPath, request);
    EXPECT_EQ(answer->status, 400) << name;
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], name);
    return std::string(error["message"]);
  };
  EXPECT_THAT(refused("previous_response_id", "\"resp_1\""), HasSubstr("stores no conversations"));
  EXPECT_THAT(refused("conversation", "\"conv_1\""), HasSubstr("stores no conversations"));
  EXPECT_THAT(refused("background", "true"), StartsWith("background is not supported"));
  EXPECT_THAT(refused("prompt", R"({"id": "pmpt_1"})"), HasSubstr("stores no prompts"));
  EXPECT_THAT(refused("messages", "[]"), HasSubstr("use input"));
  const std::string long_input(3 * kContextTokens, 'x');
  const auto too_long = Post(kPath, Request(long_input));
  EXPECT_EQ(too_long->status, 400);
  EXPECT_EQ(too_long->json()["error"]["code"], "context_length_exceeded");
  Json image = Request();
  image["input"] = Json::parse(R"([{"role": "user", "content": [{"type": "input_image",
      "image_url": "data:image/png;base64,AAAA"}]}])");
  const Json error = Post(kPath, image)->json()["error"];
  EXPECT_EQ(error["param"], "input[0].content[0].type");
  EXPECT_EQ(error["code"], "unsupported_content");
}

TEST_F(ResponsesPathTest, ThereAreNoStoredResponses) {
  for (const char* const method : {"GET", "DELETE"}) {
    const auto answer = Begin(method, "/v1/responses/resp_1");
    answer->AwaitEnd();
    EXPECT_EQ(answer->status, 404);
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["type"], "not_found_error");
    EXPECT_THAT(std::string(error["message"]), HasSubstr("stores no responses"));
  }
  EXPECT_EQ(Post("/v1/responses/resp_1/cancel", Json::object())->status, 404);
  EXPECT_EQ(Get(kPath)->status, 405);
}

}  // namespace
}  // namespace cria::server
