// ollama's paths.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

class OllamaPathsTest : public ApiTest {
 protected:
  static Json OllamaChat(const std::string& question, int num_predict = 12) {
    return {{"model", "tiny"},
            {"messages", Json::array({{{"role", "user"}, {"content", question}}})},
            {"stream", false},
            {"keep_alive", "5m"},
            {"options", {{"temperature", 0}, {"num_predict", num_predict}, {"num_thread", 4}}}};
  }
};

TEST_F(OllamaPathsTest, Chats) {
  const auto answer = Post("/api/chat", OllamaChat("Who?"));
  ASSERT_EQ(answer->status, 200) << answer->body;
  const Json json = answer->json();
  EXPECT_EQ(json["message"]["content"], Alone(Rendered("Who?"), 12));
  EXPECT_EQ(json["message"]["role"], "assistant");
  EXPECT_EQ(json["done"], true);
  EXPECT_EQ(json["done_reason"], "length");
  EXPECT_EQ(json["eval_count"], 12);
  EXPECT_GT(json["total_duration"].get<int64_t>(), 0);
  EXPECT_THAT(std::string(json["created_at"]), testing::EndsWith("Z"));
}

TEST_F(OllamaPathsTest, StreamsByDefault) {
  Json request = OllamaChat("Who?");
  request.erase("stream");
  const auto answer = Post("/api/chat", request);
  EXPECT_EQ(answer->content_type, "application/x-ndjson");
  std::string text;
  const auto values = answer->values();
  for (const Json& value : values) {
    text += value["message"]["content"].get<std::string>();
    EXPECT_EQ(value["done"], &value == &values.back());
  }
  EXPECT_EQ(text, Alone(Rendered("Who?"), 12));
}

TEST_F(OllamaPathsTest, Generates) {
  Json request = {{"model", "tiny"},
                  {"prompt", "Who?"},
                  {"stream", false},
                  {"options", {{"temperature", 0}, {"num_predict", 12}}}};
  EXPECT_EQ(Post("/api/generate", request)->json()["response"], Alone(Rendered("Who?"), 12));
  request["raw"] = true;
  EXPECT_EQ(Post("/api/generate", request)->json()["response"], Alone("Who?", 12));
  request["stream"] = true;
  std::string text;
  for (const Json& value : Post("/api/generate", request)->values()) {
    text += value["response"].get<std::string>();
  }
  EXPECT_EQ(text, Alone("Who?", 12));
}

TEST_F(OllamaPathsTest, LoadsAndUnloadsWithoutAPrompt) {
  for (const Json& time : {Json(), Json("5m"), Json(-1), Json("10s"), Json(0.5)}) {
    const Json fields = {{"model", "tiny"}, {"keep_alive", time}};
    EXPECT_EQ(Post("/api/generate", fields)->json()["done_reason"], "load") << time;
    EXPECT_EQ(Post("/api/chat", fields)->json()["done_reason"], "load") << time;
  }
  for (const Json& none : {Json(0), Json(0.0), Json("0"), Json("0s"), Json("0h0m")}) {
    const Json generated = Post("/api/generate", {{"prompt", ""}, {"keep_alive", none}})->json();
    EXPECT_EQ(generated["done_reason"], "unload") << none;
    EXPECT_EQ(generated["response"], "");
    const Json chat =
        Post("/api/chat", {{"messages", Json::array()}, {"keep_alive", none}})->json();
    EXPECT_EQ(chat["done_reason"], "unload") << none;
    EXPECT_EQ(chat["message"]["content"], "");
    EXPECT_EQ(chat["done"], true);
  }
}

TEST_F(OllamaPathsTest, Formats) {
  Json request = OllamaChat("Who?", 200);
  request["format"] = "json";
  EXPECT_TRUE(Json::parse(std::string(Post("/api/chat", request)->json()["message"]["content"]))
                  .is_object());
  request["format"] = {{"enum", {"a", "b"}}};
  EXPECT_THAT(std::string(Post("/api/chat", request)->json()["message"]["content"]),
              testing::AnyOf("\"a\"", "\"b\""));
}

TEST_F(OllamaPathsTest, CallsTools) {
  Json request = OllamaChat("Add.", 200);
  request["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "add", "parameters":
      {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"],
       "additionalProperties": false}}}])");
  request["tool_choice"] = "required";
  Json message = Post("/api/chat", request)->json()["message"];
  ASSERT_GE(message["tool_calls"].size(), 1u);
  EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "add");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], Json({{"a", 1}}));
  request["stream"] = true;
  size_t calls = 0;
  for (const Json& value : Post("/api/chat", request)->values()) {
    calls += value["message"].contains("tool_calls") ? 1 : 0;
  }
  EXPECT_EQ(calls, message["tool_calls"].size());
}

TEST_F(OllamaPathsTest, Thinks) {
  Json request = OllamaChat("Who?");
  request["think"] = true;
  const Json message = Post("/api/chat", request)->json()["message"];
  EXPECT_NE(message["thinking"], "");
  EXPECT_EQ(message["content"], "");
  for (const char* const level : {"low", "medium", "high", "max"}) {
    request["think"] = level;
    EXPECT_EQ(Post("/api/chat", request)->json()["message"], message) << level;
  }
  request["think"] = false;
  EXPECT_FALSE(Post("/api/chat", request)->json()["message"].contains("thinking"));
  request["prompt"] = "Who?";
  EXPECT_FALSE(Post("/api/generate", request)->json().contains("thinking"));
  request["think"] = "high";
  EXPECT_TRUE(Post("/api/generate", request)->json().contains("thinking"));
}

TEST_F(OllamaPathsTest, LogProbabilities) {
  Json request = OllamaChat("Who?", 5);
  request["prompt"] = "Who?";
  request["logprobs"] = true;
  request["top_logprobs"] = 2;
  for (const char* const path : {"/api/chat", "/api/generate"}) {
    request["stream"] = false;
    const Json tokens = Post(path, request)->json()["logprobs"];
    ASSERT_EQ(tokens.size(), 5u) << path;
    for (const Json& token : tokens) {
      EXPECT_LE(token["logprob"].get<double>(), 0.0);
      ASSERT_EQ(token["top_logprobs"].size(), 2u);
      EXPECT_EQ(token["top_logprobs"][0]["token"], token["token"]);
      EXPECT_TRUE(token["bytes"].is_array());
    }
    request["stream"] = true;
    Json streamed = Json::array();
    for (const Json& value : Post(path, request)->values()) {
      for (const Json& token : value.value("logprobs", Json::array())) streamed.push_back(token);
    }
    EXPECT_EQ(streamed, tokens) << path;
  }
  request["logprobs"] = false;
  EXPECT_EQ(Post("/api/chat", request)->status, 400);
}

TEST_F(OllamaPathsTest, ALargerContextThanThereIsIsToldOnce) {
  std::vector<size_t> told;
  Api api(*models_, work_,
          {.version = "1.2.3", .on_larger_context = [&](size_t wanted_tokens, size_t context) {
             EXPECT_EQ(context, kContextTokens);
             told.push_back(wanted_tokens);
           }});
  for (const size_t context : {kContextTokens, size_t{8192}, size_t{1000000}}) {
    Json request = OllamaChat("Who?");
    request["options"]["num_ctx"] = context;
    auto answer = std::make_shared<RecordedAnswer>();
    api.Handle({.method = "POST", .path = "/api/chat", .body = Written(request)}, answer);
    answer->AwaitEnd();
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_EQ(answer->json()["message"]["content"], Alone(Rendered("Who?"), 12));
  }
  EXPECT_EQ(told, std::vector<size_t>{8192});
}

TEST_F(OllamaPathsTest, RecentTokensMayBeTheWholeContext) {
  Json request = OllamaChat("Who?");
  request["options"]["repeat_penalty"] = 1.5;
  request["options"]["repeat_last_n"] = -1;
  EXPECT_EQ(Post("/api/chat", request)->status, 200);
}

TEST_F(OllamaPathsTest, HasThePenaltiesOfTheSampler) {
  Json request = OllamaChat("Who? Who? Who?");
  request["options"]["num_predict"] = 20;
  const auto ask = [&](const char* field, const Json& value) {
    Json changed = request;
    changed["options"][field] = value;
    const auto answer = Post("/api/chat", changed);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->json()["message"]["content"];
  };
  const Json plain = Post("/api/chat", request)->json()["message"]["content"];
  EXPECT_NE(ask("presence_penalty", 20), plain);
  EXPECT_NE(ask("frequency_penalty", 20), plain);
  EXPECT_EQ(ask("typical_p", 1), plain);
}

TEST_F(OllamaPathsTest, DescribesTheModel) {
  const Json tags = Get("/api/tags")->json();
  EXPECT_EQ(tags["models"][0]["name"], "tiny");
  EXPECT_EQ(std::string(tags["models"][0]["digest"]).size(), 32u);
  EXPECT_EQ(Get("/api/ps")->json()["models"][0]["model"], "tiny");
  EXPECT_EQ(Get("/api/version")->json(), Json({{"version", "0.12.11"}}));
  const Json shown = Post("/api/show", {{"model", "tiny"}})->json();
  EXPECT_EQ(shown["template"], kToolTemplate);
  EXPECT_EQ(shown["capabilities"], Json({"completion", "tools", "thinking"}));
  // Every name that a chat takes.
  for (const char* const name : {"tiny:latest", "llama3.2", "llama3.2:1b"}) {
    EXPECT_EQ(Post("/api/show", {{"model", name}})->json(), shown) << name;
    EXPECT_EQ(Post("/api/show", {{"name", name}})->json(), shown) << name;
  }
  EXPECT_EQ(Post("/api/show", Json::object())->status, 400);
}

TEST_F(OllamaPathsTest, RefusesByName) {
  const auto refused = [&](const char* path, const char* field, const char* value) {
    Json request = OllamaChat("Who?");
    request["prompt"] = "Who?";
    request[Json::json_pointer(field)] = Json::parse(value);
    const auto answer = Post(path, request);
    EXPECT_EQ(answer->status, 400) << field;
    return answer->json()["error"].get<std::string>();
  };
  using testing::StartsWith;
  EXPECT_THAT(refused("/api/chat", "/messages/0/images", "[\"x\"]"),
              StartsWith("messages[0].images is not supported"));
  EXPECT_THAT(refused("/api/generate", "/images", "[\"x\"]"),
              StartsWith("images is not supported"));
  EXPECT_THAT(refused("/api/generate", "/suffix", "\"x\""), StartsWith("suffix is not supported"));
  EXPECT_THAT(refused("/api/generate", "/context", "[1]"), StartsWith("context is not supported"));
  EXPECT_THAT(refused("/api/chat", "/options/num_ctx", "0"), StartsWith("options.num_ctx must"));
  for (const char* const large :
       {"9223372036854775808", "1e30", "123456789012345678901234567890"}) {
    EXPECT_THAT(refused("/api/chat", "/options/num_ctx", large),
                StartsWith("options.num_ctx is too large"));
  }
  EXPECT_THAT(refused("/api/chat", "/options/repeat_last_n", "-2"),
              StartsWith("options.repeat_last_n must"));
  EXPECT_THAT(refused("/api/chat", "/options/mirostat", "2"), StartsWith("options.mirostat"));
  EXPECT_THAT(refused("/api/chat", "/options/presence_penalty", "1001"),
              StartsWith("options.presence_penalty is "));
  EXPECT_THAT(refused("/api/chat", "/options/typical_p", "\"x\""),
              StartsWith("options.typical_p is not a number"));
  EXPECT_THAT(refused("/api/chat", "/format", "5"), StartsWith("format is neither"));
  for (const char* const think : {"5", "\"\"", "\"false\"", "\"true\"", "\"off\"", "\"none\""}) {
    EXPECT_THAT(refused("/api/chat", "/think", think), StartsWith("think is not true"));
    EXPECT_THAT(refused("/api/generate", "/think", think), StartsWith("think is not true"));
  }
  EXPECT_THAT(refused("/api/chat", "/options", "[]"), StartsWith("options is not an object"));
}

}  // namespace
}  // namespace cria::server
