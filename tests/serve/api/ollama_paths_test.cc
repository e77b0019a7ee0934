// ollama's paths.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/api/api_fixture.h"

namespace cria::serve {
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
  request["prompt"] = "";
  EXPECT_EQ(Post("/api/generate", request)->json()["done_reason"], "load");
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
  request["think"] = false;
  EXPECT_FALSE(Post("/api/chat", request)->json()["message"].contains("thinking"));
}

TEST_F(OllamaPathsTest, DescribesTheModel) {
  const Json tags = Get("/api/tags")->json();
  EXPECT_EQ(tags["models"][0]["name"], "tiny");
  EXPECT_EQ(std::string(tags["models"][0]["digest"]).size(), 32u);
  EXPECT_EQ(Get("/api/ps")->json()["models"][0]["model"], "tiny");
  EXPECT_EQ(Get("/api/version")->json(), Json({{"version", "1.2.3"}}));
  const Json shown = Post("/api/show", {{"model", "tiny:latest"}})->json();
  EXPECT_EQ(shown["template"], kToolTemplate);
  EXPECT_EQ(shown["capabilities"], Json({"completion", "tools", "thinking"}));
  const auto unknown = Post("/api/show", {{"model", "other"}});
  EXPECT_EQ(unknown->status, 404);
  EXPECT_TRUE(unknown->json()["error"].is_string());
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
  EXPECT_THAT(refused("/api/chat", "/options/num_ctx", "1000000"),
              StartsWith("options.num_ctx is 1000000, but"));
  EXPECT_THAT(refused("/api/chat", "/options/mirostat", "2"), StartsWith("options.mirostat"));
  EXPECT_THAT(refused("/api/chat", "/options/presence_penalty", "1"),
              StartsWith("options.presence_penalty"));
  EXPECT_THAT(refused("/api/chat", "/format", "5"), StartsWith("format is neither"));
  EXPECT_THAT(refused("/api/chat", "/think", "5"), StartsWith("think is neither"));
  EXPECT_THAT(refused("/api/chat", "/options", "[]"), StartsWith("options is not an object"));
}

}  // namespace
}  // namespace cria::serve
