// POST /v1/chat/completions

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/utf8.h"
#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using ChatPathTest = ApiTest;

std::string Content(const Json& answer, size_t choice = 0) {
  return answer["choices"][choice]["message"]["content"];
}

TEST_F(ChatPathTest, AnswersAsASessionAloneDoes) {
  const auto answer = Post("/v1/chat/completions", Chat("Who are you?", 20));
  ASSERT_EQ(answer->status, 200) << answer->body;
  const Json json = answer->json();
  EXPECT_EQ(Content(json), Alone(Rendered("Who are you?"), 20));
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "tiny");
  EXPECT_EQ(json["choices"][0]["message"]["role"], "assistant");
  EXPECT_THAT(std::string(json["id"]), testing::StartsWith("chatcmpl-"));
  const Json& usage = json["usage"];
  EXPECT_EQ(usage["total_tokens"].get<int>(),
            usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  EXPECT_EQ(json["timings"]["predicted_n"], usage["completion_tokens"]);
}

TEST_F(ChatPathTest, SeveralUsersGetWhatTheyGetAlone) {
  std::vector<std::shared_ptr<RecordedAnswer>> answers;
  for (int i = 0; i < 6; ++i) {
    answers.push_back(
        Begin("POST", "/v1/chat/completions", Written(Chat("Question " + std::to_string(i), 30))));
  }
  for (int i = 0; i < 6; ++i) {
    answers[static_cast<size_t>(i)]->AwaitEnd();
    EXPECT_EQ(Content(answers[static_cast<size_t>(i)]->json()),
              Alone(Rendered("Question " + std::to_string(i)), 30));
  }
}

TEST_F(ChatPathTest, StreamsTheSame) {
  Json request = Chat("Who are you?", 20);
  const Json whole = Post("/v1/chat/completions", request)->json();
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const auto answer = Post("/v1/chat/completions", request);
  EXPECT_EQ(answer->content_type, "text/event-stream");
  std::string text;
  const auto values = answer->values();
  ASSERT_GE(values.size(), 3u);
  EXPECT_EQ(values[0]["choices"][0]["delta"]["role"], "assistant");
  for (const Json& value : values) {
    EXPECT_EQ(value["object"], "chat.completion.chunk");
    EXPECT_EQ(value["id"], values[0]["id"]);
    if (!value["choices"].empty()) text += value["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(text, Content(whole));
  const Json& last = values[values.size() - 2]["choices"][0];
  EXPECT_EQ(last["finish_reason"], whole["choices"][0]["finish_reason"]);
  EXPECT_EQ(values.back()["choices"], Json::array());
  EXPECT_EQ(values.back()["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
  EXPECT_GE(whole["usage"]["completion_tokens"], 10);
}

TEST_F(ChatPathTest, TheSecondTurnAndAnotherUserFindWhatIsCached) {
  const std::string system(150, 'x');
  Json request = Chat("One?", 10);
  request["messages"].insert(request["messages"].begin(),
                             Json{{"role", "system"}, {"content", system}});
  const Json first = Post("/v1/chat/completions", request)->json();
  EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  const int first_prompt = first["usage"]["prompt_tokens"];

  Json second = request;
  second["messages"].push_back({{"role", "assistant"}, {"content", "Yes."}});
  second["messages"].push_back({{"role", "user"}, {"content", "Two?"}});
  const Json turn = Post("/v1/chat/completions", second)->json();
  // The template writes an empty reasoning only at the end, so that the first turn's end differs.
  EXPECT_GE(turn["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), first_prompt - 20);

  request["messages"][1]["content"] = "Another?";
  const Json other = Post("/v1/chat/completions", request)->json();
  EXPECT_GE(other["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), 100);
}

TEST_F(ChatPathTest, SeveralChoicesHaveTheirOwnSeeds) {
  Json request = Chat("Who?", 16);
  request["temperature"] = 1.5;
  request["top_p"] = 1;
  request["min_p"] = 0;
  request["seed"] = 7;
  request["n"] = 3;
  const Json json = Post("/v1/chat/completions", request)->json();
  ASSERT_EQ(json["choices"].size(), 3u);
  EXPECT_NE(Content(json, 0), Content(json, 1));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    Json one = request;
    one["n"] = 1;
    one["seed"] = 7 + i;
    EXPECT_EQ(Content(Post("/v1/chat/completions", one)->json()), Content(json, i));
  }
  request["stream"] = true;
  std::vector<std::string> texts(3);
  for (const Json& value : Post("/v1/chat/completions", request)->values()) {
    const Json& choice = value["choices"][0];
    texts[choice["index"].get<size_t>()] += choice["delta"].value("content", "");
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(texts[i], Content(json, i));
}

// As in OpenAI's API.
TEST_F(ChatPathTest, UsageCountsThePromptOfSeveralChoicesOnce) {
  Json request = Chat("Who?", 4);
  request["ignore_eos"] = true;
  const Json one = Post("/v1/chat/completions", request)->json()["usage"];
  request["n"] = 3;
  const Json json = Post("/v1/chat/completions", request)->json();
  EXPECT_EQ(json["usage"]["prompt_tokens"], one["prompt_tokens"]);
  EXPECT_EQ(json["usage"]["completion_tokens"], 12);
  EXPECT_EQ(json["usage"]["total_tokens"].get<int>(), one["prompt_tokens"].get<int>() + 12);
  EXPECT_LE(json["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(),
            one["prompt_tokens"].get<int>());
  EXPECT_EQ(json["timings"]["predicted_n"], 12);
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const auto values = Post("/v1/chat/completions", request)->values();
  EXPECT_EQ(values.back()["usage"]["prompt_tokens"], one["prompt_tokens"]);
  EXPECT_EQ(values.back()["usage"]["completion_tokens"], 12);
}

TEST_F(ChatPathTest, StopStringsEndTheAnswer) {
  const std::string whole = Alone(Rendered("Who?"), 30);
  ASSERT_GT(whole.size(), 10u);
  Json request = Chat("Who?", 30);
  const std::string stop = whole.substr(2, 2);
  ASSERT_EQ(ValidUtf8Prefix(stop), stop.size());
  request["stop"] = stop;
  const Json json = Post("/v1/chat/completions", request)->json();
  EXPECT_EQ(Content(json), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  request["stop"] = Json::array({"never to be found", stop});
  EXPECT_EQ(Content(Post("/v1/chat/completions", request)->json()), Content(json));
}

TEST_F(ChatPathTest, LogProbabilities) {
  Json request = Chat("Who?", 5);
  request["logprobs"] = true;
  request["top_logprobs"] = 2;
  const Json json = Post("/v1/chat/completions", request)->json();
  const Json& content = json["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 5u);
  for (const Json& token : content) {
    EXPECT_LE(token["logprob"].get<double>(), 0.0);
    ASSERT_EQ(token["top_logprobs"].size(), 2u);
    EXPECT_EQ(token["top_logprobs"][0]["bytes"], token["bytes"]);
    EXPECT_DOUBLE_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);
    EXPECT_GE(token["top_logprobs"][0]["logprob"].get<double>(),
              token["top_logprobs"][1]["logprob"].get<double>());
  }
  request["stream"] = true;
  Json streamed = Json::array();
  for (const Json& value : Post("/v1/chat/completions", request)->values()) {
    const Json& logprobs = value["choices"][0]["logprobs"];
    if (logprobs.is_object()) {
      for (const Json& token : logprobs["content"]) streamed.push_back(token);
    }
  }
  EXPECT_EQ(streamed, content);
}

TEST_F(ChatPathTest, LogitBias) {
  const int32_t id = Unwrap(engine_->tokenizer().Encode("a", {.add_bos = false})).front();
  Json request = Chat("Who?", 6);
  request["logit_bias"] = {{std::to_string(id), 100}};
  EXPECT_EQ(Content(Post("/v1/chat/completions", request)->json()), "aaaaaa");
  request["logit_bias"]["0"] = nullptr;
  EXPECT_EQ(Content(Post("/v1/chat/completions", request)->json()), "aaaaaa");
  request["logit_bias"] = Json::array({Json::array({id, 100.0}), Json::array({0, false})});
  EXPECT_EQ(Content(Post("/v1/chat/completions", request)->json()), "aaaaaa");
}

TEST_F(ChatPathTest, AnswersMatchAFormat) {
  Json request = Chat("Who?", 200);
  request["response_format"] = {{"type", "json_object"}};
  EXPECT_TRUE(Json::parse(Content(Post("/v1/chat/completions", request)->json())).is_object());
  request["response_format"] = Json::parse(R"({"type": "json_schema", "json_schema": {"name": "x",
      "schema": {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}},
        "required": ["a", "b"], "additionalProperties": false}}})");
  const Json json = Post("/v1/chat/completions", request)->json();
  const Json value = Json::parse(Content(json));
  EXPECT_TRUE(value["b"].is_boolean());
  EXPECT_THAT(value["a"].get<int>(), testing::AnyOf(1, 2));
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  request["response_format"] = {{"type", "text"}};
  EXPECT_EQ(Post("/v1/chat/completions", request)->status, 200);
}

TEST_F(ChatPathTest, NumbersOfASchemaAreExact) {
  Json request = Chat("Who?", 200);
  const std::string constant = "[18446744073709551616,0.1234567890123456789012]";
  request["response_format"] =
      ReadJsonText(R"({"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": )" +
                       constant + "}}}",
                   "the format");
  std::string answer = Content(Post("/v1/chat/completions", request)->json());
  std::erase_if(answer, [](char letter) { return letter == ' ' || letter == '\n'; });
  EXPECT_EQ(answer, constant);
}

// vLLM's names of the same, and forms that OpenAI does not have.
TEST_F(ChatPathTest, AnswersMatchAGuide) {
  const auto ask = [&](const Json& fields) {
    Json request = Chat("Who?", 200);
    request.update(fields);
    const auto answer = Post("/v1/chat/completions", request);
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_EQ(answer->json()["choices"][0]["finish_reason"], "stop") << fields;
    return Content(answer->json());
  };
  const Json schema = {{"enum", {1, 2}}};
  EXPECT_THAT(ask({{"guided_json", schema}}), testing::AnyOf("1", "2"));
  EXPECT_THAT(ask({{"guided_json", Written(schema)}}), testing::AnyOf("1", "2"));
  EXPECT_THAT(ask({{"guided_regex", "[ab]{3}"}}), testing::ContainsRegex("^[ab][ab][ab]$"));
  EXPECT_THAT(ask({{"guided_grammar", "root ::= \"x\" | \"y\""}}), testing::AnyOf("x", "y"));
  // What an expression would read otherwise is meant as it is.
  const std::vector<std::string> choices = {"a.*(b|c)+?", "^[x]{2}$\\d", "é\n/"};
  for (const std::string& choice : choices) {
    EXPECT_EQ(ask({{"guided_choice", Json::array({choice})}}), choice);
  }
  EXPECT_THAT(ask({{"guided_choice", choices}}), testing::AnyOfArray(choices));
  EXPECT_THAT(ask({{"structured_outputs", {{"choice", {"yes", "no"}}}}}),
              testing::AnyOf("yes", "no"));
  EXPECT_TRUE(Json::parse(ask({{"structured_outputs", {{"json_object", true}}}})).is_object());
  Json two = Chat("Who?", 2);
  two["guided_json"] = schema;
  two["guided_regex"] = "a";
  EXPECT_EQ(Post("/v1/chat/completions", two)->json()["error"]["param"], "guided_regex");
}

TEST_F(ChatPathTest, LlamaServersNamesOfOptions) {
  Json request = Chat("Who?", 5);
  request["n_probs"] = 2;
  const Json named = Post("/v1/chat/completions", request)->json();
  request.erase("n_probs");
  request["logprobs"] = true;
  request["top_logprobs"] = 2;
  EXPECT_EQ(named["choices"], Post("/v1/chat/completions", request)->json()["choices"]);
  Json limited = Chat("Who?");
  limited.erase("max_tokens");
  limited["n_predict"] = 3;
  limited["ignore_eos"] = true;
  EXPECT_EQ(Post("/v1/chat/completions", limited)->json()["usage"]["completion_tokens"], 3);
}

TEST_F(ChatPathTest, RecentTokensMayBeTheWholeContext) {
  Json request = Chat("Who? " + std::string(300, 'x'), 40);
  request["repeat_penalty"] = 1.9;
  request["ignore_eos"] = true;
  const auto ask = [&](int count) {
    request["repeat_last_n"] = count;
    const auto answer = Post("/v1/chat/completions", request);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return Content(answer->json());
  };
  EXPECT_EQ(ask(-1), ask(static_cast<int>(kContextTokens)));
  EXPECT_NE(ask(-1), ask(0));
  // vLLM's penalty has no other range.
  const std::string whole = ask(-1);
  request["repetition_penalty"] = request["repeat_penalty"];
  request.erase("repeat_penalty");
  request.erase("repeat_last_n");
  EXPECT_EQ(Content(Post("/v1/chat/completions", request)->json()), whole);
}

TEST_F(ChatPathTest, EveryStepOfTheSamplerCanBeAskedFor) {
  const auto ask = [&](const Json& fields) {
    Json request = Chat("Who? Who? Who? Who?", 40);
    request["ignore_eos"] = true;
    request.update(fields);
    const auto answer = Post("/v1/chat/completions", request);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return Content(answer->json());
  };
  const std::string plain = ask(Json::object());
  for (const char* const changes :
       {R"({"presence_penalty": 2})", R"({"frequency_penalty": 2})",
        R"({"dry_multiplier": 5, "dry_sequence_breakers": ["\u0001"]})",
        R"({"xtc_probability": 1, "xtc_threshold": 0})",
        R"({"typical_p": 0.1, "top_k": 0, "temperature": 3, "seed": 1})"}) {
    const Json fields = Json::parse(changes);
    const std::string text = ask(fields);
    EXPECT_NE(text, plain) << changes;
    // A request that is repeated has the same answer.
    EXPECT_EQ(ask(fields), text) << changes;
  }
  for (const char* const neutral :
       {R"({"presence_penalty": 0, "frequency_penalty": 0.0, "typical_p": 1})",
        R"({"dry_multiplier": 0, "dry_base": 3, "xtc_threshold": 0})",
        R"({"dry_multiplier": 5, "dry_penalty_last_n": 0})",
        R"({"xtc_probability": 1, "xtc_threshold": 0.6})"}) {
    EXPECT_EQ(ask(Json::parse(neutral)), plain) << neutral;
  }
}

TEST_F(ChatPathTest, RequiredToolsAreCalled) {
  Json request = Chat("Add.", 300);
  request["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "add", "parameters":
      {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
       "additionalProperties": false}}}])");
  request["tool_choice"] = {{"type", "function"}, {"function", {{"name", "add"}}}};
  const Json json = Post("/v1/chat/completions", request)->json();
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u) << json;
  const Json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"]["name"], "add");
  EXPECT_TRUE(Json::parse(call["function"]["arguments"].get<std::string>()).contains("a"));

  request["stream"] = true;
  std::string arguments;
  std::string name;
  std::string finish;
  for (const Json& value : Post("/v1/chat/completions", request)->values()) {
    const Json& delta = value["choices"][0]["delta"];
    if (value["choices"][0]["finish_reason"].is_string()) {
      finish = value["choices"][0]["finish_reason"];
    }
    if (!delta.contains("tool_calls")) continue;
    const Json& function = delta["tool_calls"][0]["function"];
    EXPECT_EQ(delta["tool_calls"][0]["index"], 0);
    // The name comes once, and first.
    if (function.contains("name")) {
      EXPECT_EQ(name, "");
      EXPECT_EQ(arguments, "");
      name = function["name"];
    }
    arguments += function.value("arguments", "");
  }
  EXPECT_EQ(name, "add");
  EXPECT_EQ(arguments, call["function"]["arguments"].get<std::string>());
  EXPECT_EQ(finish, "tool_calls");

  // The call and its result go back to the model.
  request.erase("tool_choice");
  request["messages"].push_back(choice["message"]);
  request["messages"].push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "3"}});
  request.erase("stream");
  request["max_tokens"] = 5;
  EXPECT_EQ(Post("/v1/chat/completions", request)->status, 200);
}

TEST_F(ChatPathTest, OnlyAllowedToolsAreCalled) {
  Json request = Chat("Add.", 300);
  request["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "add"}},
      {"type": "function", "function": {"name": "time"}}])");
  const size_t prompt_tokens =
      Post("/v1/chat/completions", request)->json()["usage"]["prompt_tokens"];
  for (const char* const name : {"add", "time"}) {
    request["tool_choice"] = {
        {"type", "allowed_tools"},
        {"allowed_tools",
         {{"mode", "required"},
          {"tools", Json::array({{{"type", "function"}, {"function", {{"name", name}}}}})}}}};
    const Json json = Post("/v1/chat/completions", request)->json();
    const Json& calls = json["choices"][0]["message"]["tool_calls"];
    ASSERT_FALSE(calls.empty()) << json;
    for (const Json& call : calls) EXPECT_EQ(call["function"]["name"], name);
    // The model is told of all tools, so that its prompt stays the same.
    EXPECT_EQ(json["usage"]["prompt_tokens"], prompt_tokens);
  }
}

// For a template, the text "false" is true.
TEST_F(ChatPathTest, ReasoningIsNotTurnedOffByAText) {
  Json request = Chat("Who?", 1);
  for (const Json& wrong : {Json("false"), Json("true"), Json(0)}) {
    request["chat_template_kwargs"] = {{"enable_thinking", wrong}};
    const auto answer = Post("/v1/chat/completions", request);
    EXPECT_EQ(answer->status, 400) << wrong;
    EXPECT_EQ(answer->json()["error"]["param"], "chat_template_kwargs.enable_thinking");
    // Also under a name that this template does not read.
    request["chat_template_kwargs"] = {{"thinking", wrong}};
    EXPECT_EQ(Post("/v1/chat/completions", request)->json()["error"]["param"],
              "chat_template_kwargs.thinking");
  }
}

TEST_F(ChatPathTest, ReasoningIsApart) {
  Json request = Chat("Who?", 10);
  request["chat_template_kwargs"] = {{"enable_thinking", true}};
  const Json message = Post("/v1/chat/completions", request)->json()["choices"][0]["message"];
  EXPECT_EQ(message["content"], "");
  EXPECT_NE(message["reasoning_content"], "");
  request["stream"] = true;
  std::string reasoning;
  for (const Json& value : Post("/v1/chat/completions", request)->values()) {
    reasoning += value["choices"][0]["delta"].value("reasoning_content", "");
  }
  EXPECT_EQ(reasoning, message["reasoning_content"].get<std::string>());
}

TEST_F(ChatPathTest, UsageCountsTheTokensOfReasoning) {
  const auto reasoning_tokens = [](const Json& answer) {
    return answer["usage"]["completion_tokens_details"]["reasoning_tokens"];
  };
  Json request = Chat("Who?", 10);
  EXPECT_EQ(reasoning_tokens(Post("/v1/chat/completions", request)->json()), 0);
  request["enable_thinking"] = true;
  request["ignore_eos"] = true;
  request["reasoning_budget"] = 4;
  const Json one = Post("/v1/chat/completions", request)->json();
  EXPECT_EQ(reasoning_tokens(one), 4);
  EXPECT_EQ(one["usage"]["completion_tokens"], 10);
  request["n"] = 2;
  EXPECT_EQ(reasoning_tokens(Post("/v1/chat/completions", request)->json()), 8);
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  EXPECT_EQ(reasoning_tokens(Post("/v1/chat/completions", request)->values().back()), 8);
}

TEST_F(ChatPathTest, ReasoningHasSeveralNames) {
  for (const Json& on :
       {Json{{"enable_thinking", true}}, Json{{"reasoning_effort", "low"}},
        Json{{"reasoning", {{"effort", "high"}}}}, Json{{"reasoning", {{"enabled", true}}}}}) {
    Json request = Chat("Who?", 5);
    request.update(on);
    const Json message = Post("/v1/chat/completions", request)->json()["choices"][0]["message"];
    EXPECT_TRUE(message.contains("reasoning_content")) << on;
    EXPECT_THAT(Post("/apply-template", request)->json()["prompt"].get<std::string>(),
                testing::EndsWith("<think>"))
        << on;
  }
  for (const Json& off : {Json{{"enable_thinking", false}}, Json{{"reasoning_effort", "none"}},
                          Json{{"reasoning", {{"enabled", false}}}}}) {
    Json request = Chat("Who?", 5);
    request.update(off);
    EXPECT_THAT(Post("/apply-template", request)->json()["prompt"].get<std::string>(),
                testing::EndsWith("</think>"))
        << off;
  }
}

TEST_F(ChatPathTest, HarmlessFieldsAreAccepted) {
  Json request = Chat();
  request["user"] = "u";
  request["metadata"] = {{"a", "b"}};
  request["store"] = false;
  request["service_tier"] = "auto";
  request["frequency_penalty"] = 0;
  request["presence_penalty"] = 0.0;
  request["something_new"] = {1, 2};
  request["stop"] = nullptr;
  request["seed"] = nullptr;
  request["max_tokens"] = 5.0;
  EXPECT_EQ(Post("/v1/chat/completions", request)->status, 200);
}

}  // namespace
}  // namespace cria::server
