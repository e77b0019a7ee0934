// POST /v1/completions

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

class CompletionPathTest : public ApiTest {
 protected:
  static Json Completion(const Json& prompt, size_t max_tokens = 12) {
    return {{"prompt", prompt}, {"temperature", 0}, {"max_tokens", max_tokens}};
  }
  static std::string Text(const Json& answer, size_t choice = 0) {
    return answer["choices"][choice]["text"];
  }
};

TEST_F(CompletionPathTest, ContinuesTexts) {
  const auto answer = Post("/v1/completions", Completion("Once upon"));
  ASSERT_EQ(answer->status, 200) << answer->body;
  const Json json = answer->json();
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(Text(json), Alone("Once upon", 12));
  EXPECT_EQ(json["usage"]["completion_tokens"], 12);
}

TEST_F(CompletionPathTest, ContinuesTokens) {
  std::vector<int32_t> ids = Unwrap(engine_->tokenizer().Encode("Once upon"));
  EXPECT_EQ(Text(Post("/v1/completions", Completion(ids))->json()), Alone("Once upon", 12));
}

TEST_F(CompletionPathTest, ContinuesSeveralPrompts) {
  Json request = Completion({"One", "Two"});
  request["n"] = 2;
  request["echo"] = true;
  const Json json = Post("/v1/completions", request)->json();
  ASSERT_EQ(json["choices"].size(), 4u);
  EXPECT_EQ(Text(json, 0), "One" + Alone("One", 12));
  EXPECT_EQ(Text(json, 1), Text(json, 0));
  EXPECT_EQ(Text(json, 3), "Two" + Alone("Two", 12));
  EXPECT_EQ(json["choices"][3]["index"], 3);
}

TEST_F(CompletionPathTest, Streams) {
  Json request = Completion("Once upon");
  const std::string whole = Text(Post("/v1/completions", request)->json());
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const auto values = Post("/v1/completions", request)->values();
  std::string text;
  for (const Json& value : values) {
    if (!value["choices"].empty()) text += Text(value);
  }
  EXPECT_EQ(text, whole);
  EXPECT_EQ(values.back()["usage"]["completion_tokens"], 12);
  EXPECT_EQ(values.back()["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);
  EXPECT_TRUE(values[values.size() - 2]["choices"][0]["finish_reason"].is_string());
}

TEST_F(CompletionPathTest, LogProbabilities) {
  Json request = Completion("Once upon", 4);
  request["logprobs"] = 2;
  const Json logprobs = Post("/v1/completions", request)->json()["choices"][0]["logprobs"];
  ASSERT_EQ(logprobs["tokens"].size(), 4u);
  EXPECT_EQ(logprobs["token_logprobs"].size(), 4u);
  EXPECT_EQ(logprobs["top_logprobs"].size(), 4u);
  EXPECT_EQ(logprobs["text_offset"][0], 0);
}

// For text 'é😀ab', 'a' is at 2, although each byte of the others is a token.
TEST_F(CompletionPathTest, OffsetsCountCharactersOfTheText) {
  const std::string text = "é😀ab";
  Json request = Completion("Once upon", 20);
  request["logprobs"] = 0;
  request["guided_choice"] = Json::array({text});
  const Json choice = Post("/v1/completions", request)->json()["choices"][0];
  EXPECT_EQ(choice["text"], text);
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json({0, 0, 1, 1, 1, 1, 2, 3}));
}

TEST_F(CompletionPathTest, EchoesThePromptThatTokensAre) {
  const std::vector<int32_t> ids = Unwrap(engine_->tokenizer().Encode("Où? "));
  Json request = Completion(ids);
  const std::string answer = Text(Post("/v1/completions", request)->json());
  request["echo"] = true;
  EXPECT_EQ(Text(Post("/v1/completions", request)->json()), "Où? " + answer);
  request["stream"] = true;
  std::string streamed;
  for (const Json& value : Post("/v1/completions", request)->values()) streamed += Text(value);
  EXPECT_EQ(streamed, "Où? " + answer);
  request["prompt"] = Json::array({ids, ids});
  request["stream"] = false;
  EXPECT_EQ(Text(Post("/v1/completions", request)->json(), 1), "Où? " + answer);
}

TEST_F(CompletionPathTest, UsageCountsEachPromptOnce) {
  Json request = Completion({"One", "Two"});
  const Json one = Post("/v1/completions", request)->json()["usage"];
  request["n"] = 2;
  const Json two = Post("/v1/completions", request)->json()["usage"];
  EXPECT_EQ(two["prompt_tokens"], one["prompt_tokens"]);
  EXPECT_EQ(two["completion_tokens"].get<int>(), 2 * one["completion_tokens"].get<int>());
}

TEST_F(CompletionPathTest, MatchesAGrammar) {
  Json request = Completion("Yes or no? ", 20);
  request["grammar"] = "root ::= \"yes\" | \"no\"";
  EXPECT_THAT(Text(Post("/v1/completions", request)->json()), testing::AnyOf("yes", "no"));
}

}  // namespace
}  // namespace cria::server
