// POST /completion and /infill

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using testing::StartsWith;

class LlamaCompletionTest : public ApiTest {
 protected:
  static Json Prompt(const Json& prompt, int n_predict) {
    return {{"prompt", prompt}, {"n_predict", n_predict}, {"temperature", 0}};
  }
  static std::vector<Json> EventsOf(const std::string& body) {
    std::vector<Json> events;
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) events.push_back(Json::parse(line.substr(std::string("data: ").size())));
    }
    return events;
  }
};

TEST_F(LlamaCompletionTest, ContinuesATextAsASessionAloneDoes) {
  for (const char* const path : {"/completion", "/completions"}) {
    const auto answer = Post(path, Prompt("Once upon", 5));
    ASSERT_EQ(answer->status, 200) << answer->body;
    const Json json = answer->json();
    EXPECT_EQ(json["content"], Alone("Once upon", 5));
    EXPECT_EQ(json["stop"], true);
    EXPECT_EQ(json["stop_type"], "limit");
    EXPECT_EQ(json["stopping_word"], "");
    EXPECT_EQ(json["model"], "tiny");
    EXPECT_EQ(json["tokens_predicted"], 5);
    EXPECT_GT(json["tokens_evaluated"], 0);
    EXPECT_EQ(json["timings"]["predicted_n"], 5);
    EXPECT_EQ(json["generation_settings"]["n_predict"], 5);
    EXPECT_EQ(json["generation_settings"]["temperature"], 0.0);
    EXPECT_EQ(json["generation_settings"]["dry_penalty_last_n"], -1);
  }
}

TEST_F(LlamaCompletionTest, StreamsTheSame) {
  Json request = Prompt("Once upon", 20);
  const Json whole = Post("/completion", request)->json();
  request["stream"] = true;
  const auto answer = Post("/completion", request);
  EXPECT_EQ(answer->content_type, "text/event-stream");
  const std::vector<Json> events = EventsOf(answer->body);
  ASSERT_GE(events.size(), 2u);
  std::string text;
  for (const Json& event : events) {
    text += event["content"];
    EXPECT_EQ(event["stop"], &event == &events.back());
    EXPECT_EQ(event["tokens_evaluated"], whole["tokens_evaluated"]);
  }
  EXPECT_EQ(whole["content"], text);
  EXPECT_EQ(events.back()["stop_type"], whole["stop_type"]);
  EXPECT_EQ(events.back()["tokens_predicted"], whole["tokens_predicted"]);
}

TEST_F(LlamaCompletionTest, APromptMayBeTokens) {
  const Json tokens = Post("/tokenize", {{"content", "Once upon"}, {"add_special", true}})->json();
  EXPECT_EQ(Post("/completion", Prompt(tokens["tokens"], 8))->json()["content"],
            Post("/completion", Prompt("Once upon", 8))->json()["content"]);
}

TEST_F(LlamaCompletionTest, AWordStopsIt) {
  Json request = Prompt("Once upon", 20);
  request["grammar"] = "root ::= \"one two three\"";
  request["stop"] = {" t"};
  const Json json = Post("/completion", request)->json();
  EXPECT_EQ(json["content"], "one");
  EXPECT_EQ(json["stop_type"], "word");
  EXPECT_EQ(json["stopping_word"], " t");
  request.erase("stop");
  EXPECT_EQ(Post("/completion", request)->json()["stop_type"], "eos");
}

TEST_F(LlamaCompletionTest, ProbabilitiesOfEachToken) {
  Json request = Prompt("Once upon", 12);
  request["n_probs"] = 3;
  request["ignore_eos"] = true;
  const Json json = Post("/completion", request)->json();
  ASSERT_EQ(json["completion_probabilities"].size(), 12u);
  EXPECT_EQ(json["completion_probabilities"][0]["top_logprobs"].size(), 3u);
  request["stream"] = true;
  size_t count = 0;
  for (const Json& event : EventsOf(Post("/completion", request)->body)) {
    if (event.contains("completion_probabilities")) {
      count += event["completion_probabilities"].size();
    }
  }
  EXPECT_EQ(count, 12u);
}

TEST_F(LlamaCompletionTest, WhatIsWrongIsRefusedByName) {
  const auto refused = [&](const char* path, const char* field, const char* value) {
    Json request = Prompt("Who?", 2);
    request["input_prefix"] = "a";
    request["input_suffix"] = "b";
    request[field] = Json::parse(value);
    const auto answer = Post(path, request);
    EXPECT_EQ(answer->status, 400) << field << ": " << value;
    return std::string(answer->json()["error"]["message"]);
  };
  EXPECT_THAT(refused("/completion", "prompt", "null"), StartsWith("prompt is missing"));
  EXPECT_THAT(refused("/completion", "prompt", "{}"), StartsWith("prompt is neither"));
  EXPECT_THAT(refused("/completion", "prompt", R"(["a", "b"])"), StartsWith("prompt has several"));
  EXPECT_THAT(refused("/completion", "n", "2"), StartsWith("n is not supported"));
  EXPECT_THAT(refused("/completion", "stream", "5"), StartsWith("stream is neither"));
  EXPECT_THAT(refused("/completion", "return_tokens", "true"), StartsWith("return_tokens is not"));
  EXPECT_THAT(refused("/completion", "image_data", "[{}]"), StartsWith("image_data is not"));
  EXPECT_THAT(refused("/completion", "n_probs", "21"), StartsWith("n_probs must"));
  EXPECT_THAT(refused("/infill", "input_prefix", "null"), StartsWith("input_prefix is missing"));
  EXPECT_THAT(refused("/infill", "input_suffix", "5"), StartsWith("input_suffix is not a string"));
  EXPECT_THAT(refused("/infill", "prompt", "[1]"), StartsWith("prompt is not a string"));
  EXPECT_THAT(refused("/infill", "input_extra", "{}"), StartsWith("input_extra is not a list"));
  EXPECT_THAT(refused("/infill", "input_extra", "[5]"), StartsWith("input_extra[0] is not an"));
  EXPECT_THAT(refused("/infill", "input_extra", R"([{"filename": "a"}])"),
              StartsWith("input_extra[0].text is missing"));
}

}  // namespace
}  // namespace cria::server
