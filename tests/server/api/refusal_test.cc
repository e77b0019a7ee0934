// What requests are refused with: a table of errors, wrong types for every field, and hostile JSON.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using RefusalTest = ApiTest;

struct RefusedField {
  const char* field;
  const char* value;
  const char* param;  // Null: the field itself.
};

TEST_F(RefusalTest, ChatFieldsByName) {
  const std::vector<RefusedField> cases = {
      {"model", "5", nullptr},
      {"temperature", "-1", nullptr},
      {"temperature", "\"hot\"", nullptr},
      {"temperature", "1e300", nullptr},
      {"top_p", "1.5", nullptr},
      {"top_k", "0.5", nullptr},
      {"top_k", "-2", nullptr},
      {"min_p", "[]", nullptr},
      {"repeat_penalty", "0", nullptr},
      {"frequency_penalty", "1001", nullptr},
      {"presence_penalty", "\"x\"", nullptr},
      {"typical_p", "1.5", nullptr},
      {"xtc_probability", "-0.1", nullptr},
      {"xtc_threshold", "[]", nullptr},
      {"dry_multiplier", "-1", nullptr},
      {"dry_base", "0.5", nullptr},
      {"dry_allowed_length", "1.5", nullptr},
      {"dry_penalty_last_n", "-2", nullptr},
      {"dry_sequence_breakers", "{}", nullptr},
      {"dry_sequence_breakers", R"([""])", nullptr},
      {"dry_sequence_breakers", R"([1])", "dry_sequence_breakers[0]"},
      {"logit_bias", "5", nullptr},
      {"logit_bias", R"({"x": 1})", nullptr},
      {"logit_bias", R"({"1": 101})", "logit_bias.1"},
      {"logit_bias", R"({"1": "a"})", "logit_bias.1"},
      {"logit_bias", R"({"-1": 1})", nullptr},
      {"logit_bias", R"([[1]])", nullptr},
      {"max_tokens", "0", nullptr},
      {"max_tokens", "-2", nullptr},
      {"max_tokens", "1.5", nullptr},
      {"max_completion_tokens", "\"5\"", nullptr},
      {"n", "0", nullptr},
      {"n", "1000", nullptr},
      {"seed", "\"x\"", nullptr},
      {"seed", "1.5", nullptr},
      {"seed", "1e30", nullptr},
      {"stop", "5", nullptr},
      {"stop", "[5]", "stop[0]"},
      {"stop", "\"\"", nullptr},
      {"stop", R"(["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"])", nullptr},
      {"stream", "1", nullptr},
      {"stream_options", "{}", nullptr},
      {"logprobs", "1", nullptr},
      {"top_logprobs", "3", nullptr},
      {"top_logprobs", "21", nullptr},
      {"response_format", "\"json\"", nullptr},
      {"response_format", "{}", "response_format.type"},
      {"response_format", R"({"type": "xml"})", "response_format.type"},
      {"response_format", R"({"type": "json_schema"})", "response_format.json_schema"},
      {"response_format", R"({"type": "json_schema", "json_schema": {}})",
       "response_format.json_schema.schema"},
      {"response_format", R"({"type": "json_schema", "json_schema": {"schema": 5}})",
       "response_format.json_schema.schema"},
      {"response_format",
       R"({"type": "json_schema", "json_schema": {"schema": {"uniqueItems": true}}})",
       "response_format.json_schema.schema"},
      {"tools", "5", nullptr},
      {"tools", "[5]", "tools[0]"},
      {"tools", R"([{"type": "code"}])", "tools[0].type"},
      {"tools", R"([{"type": "function"}])", "tools[0].function"},
      {"tools", R"([{"function": {"name": "a b"}}])", "tools[0].function.name"},
      {"tools", R"([{"function": {"name": "a", "parameters": 5}}])",
       "tools[0].function.parameters"},
      {"tools", R"([{"function": {"name": "a", "parameters": {"type": "array"}}}])",
       "tools[0].function.parameters.type"},
      {"tools", R"([{"function": {"name": "a"}}, {"function": {"name": "a"}}])",
       "tools[1].function.name"},
      {"tool_choice", "\"required\"", nullptr},
      {"tool_choice", "\"maybe\"", nullptr},
      {"tool_choice", R"({"type": "function", "function": {"name": "x"}})",
       "tool_choice.function.name"},
      {"tool_choice", R"({"type": "allowed_tools"})", "tool_choice.allowed_tools"},
      {"tool_choice",
       R"({"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": []}})",
       "tool_choice.allowed_tools.mode"},
      {"tool_choice",
       R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}})",
       "tool_choice.allowed_tools.tools"},
      {"tool_choice", R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools":
        [{"type": "function", "function": {"name": "x"}}]}})",
       "tool_choice.allowed_tools.tools[0].function.name"},
      {"parallel_tool_calls", "\"x\"", nullptr},
      {"functions", "[{}]", nullptr},
      {"function_call", "\"f\"", nullptr},
      {"modalities", R"(["audio"])", nullptr},
      {"audio", "{}", nullptr},
      {"chat_template_kwargs", "5", nullptr},
      {"messages", "\"x\"", nullptr},
      {"messages", "[]", nullptr},
      {"guided_json", "5", nullptr},
      {"guided_json", "\"{\"", nullptr},
      {"guided_regex", "\"(\"", nullptr},
      {"guided_regex", "5", nullptr},
      {"guided_choice", "[]", nullptr},
      {"guided_choice", "[1]", nullptr},
      {"guided_grammar", "\"x\"", nullptr},
      {"structured_outputs", R"({"regex": "("})", "structured_outputs.regex"},
      {"structured_outputs", R"({"structural_tag": "{}"})", "structured_outputs.structural_tag"},
      {"n_probs", "21", nullptr},
      {"reasoning_effort", "\"some\"", nullptr},
      {"reasoning", R"({"effort": 1})", "reasoning.effort"},
      {"enable_thinking", "1", nullptr},
      {"reasoning_budget", "-2", nullptr},
      {"thinking_token_budget", "\"x\"", nullptr},
      {"repeat_last_n", "-2", nullptr},
  };
  for (const RefusedField& tested : cases) {
    SCOPED_TRACE(std::string(tested.field) + ": " + tested.value);
    Json request = Chat("Who?", 2);
    request[tested.field] = Json::parse(tested.value);
    const auto answer = Post("/v1/chat/completions", request);
    EXPECT_EQ(answer->status, 400);
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], tested.param == nullptr ? tested.field : tested.param);
    EXPECT_TRUE(error.contains("code"));
    EXPECT_NE(error["message"], "");
  }
}

// Puts values of wrong types in place of each value of a request, and of each that contains it, but
// for the one at `limit`, because an answer without a limit takes long.
class WrongTypesTest : public ApiTest {
 protected:
  // Each ends with a status, never with the process.
  void TryWrongTypes(const std::string& path, const std::string& limit, const Json& request) {
    ASSERT_EQ(Post(path, request)->status, 200) << path;
    const std::vector<std::string> wrong = {
        "null", "true", "-1",           "1e308",  "18446744073709551615", "\"\"", "\"x\"", "[]",
        "[[]]", "{}",   R"({"a": {}})", "[null]", "\"\\u0000\"",          "-0.0"};
    const Json flat = request.flatten();
    for (const auto& [pointer, unused] : flat.items()) {
      for (Json::json_pointer place(pointer); !place.empty(); place = place.parent_pointer()) {
        if (limit.starts_with(place.to_string())) continue;
        for (const std::string& value : wrong) {
          Json changed = request;
          changed[place] = Json::parse(value);
          const auto answer = Post(path, changed);
          EXPECT_THAT(answer->status, testing::AnyOf(200, 400)) << path << place << " " << value;
        }
      }
    }
  }
};

TEST_F(WrongTypesTest, Chat) {
  Json request = Chat("Who?", 1);
  request["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "f", "description":
      "d", "parameters": {"type": "object", "properties": {}}, "strict": false}}])");
  request["messages"].push_back(Json::parse(R"({"role": "assistant", "content": [{"type": "text",
      "text": "a"}], "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f",
      "arguments": "{}"}}], "reasoning_content": "r"})"));
  request["messages"].push_back(Json::parse(R"({"role": "tool", "content": "b", "tool_call_id": "a",
      "name": "f"})"));
  request["stream"] = false;
  request["stop"] = {"a", "b"};
  request["logit_bias"] = {{"1", 1}};
  request["response_format"] = {{"type", "text"}};
  request["chat_template_kwargs"] = {{"enable_thinking", true}};
  TryWrongTypes("/v1/chat/completions", "/max_tokens", request);
}

TEST_F(WrongTypesTest, Messages) {
  TryWrongTypes("/v1/messages", "/max_tokens",
                Json::parse(R"({"model": "m", "max_tokens": 1, "stream": false,
      "system": [{"type": "text", "text": "s"}], "temperature": 0, "stop_sequences": ["a"],
      "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
      "tool_choice": {"type": "auto"}, "thinking": {"type": "enabled", "budget_tokens": 1024},
      "messages": [{"role": "user", "content": "Who?"},
          {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"},
              {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
          {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
              "content": [{"type": "text", "text": "r"}]}]}]})"));
}

TEST_F(WrongTypesTest, Completions) {
  const Json sampling = Json::parse(R"({"dry_multiplier": 1, "dry_sequence_breakers": ["a"],
      "xtc_probability": 1, "stream": false, "n_probs": 1, "stop": ["a"], "ignore_eos": true})");
  Json request = {{"prompt", "Who?"}, {"n_predict", 1}};
  request.update(sampling);
  TryWrongTypes("/completion", "/n_predict", request);
  request["echo"] = false;
  request["suffix"] = "";
  TryWrongTypes("/v1/completions", "/n_predict", request);
}

TEST_F(WrongTypesTest, Generate) {
  TryWrongTypes("/api/generate", "/options/num_predict",
                Json::parse(R"({"model": "m", "prompt": "Who?", "system": "s",
      "raw": false, "stream": false, "think": false, "suffix": "", "keep_alive": 5,
      "logprobs": true, "top_logprobs": 1, "options": {"num_predict": 1, "temperature": 0}})"));
}

TEST_F(RefusalTest, PromptsThatAreTooLong) {
  const auto answer = Post("/v1/chat/completions", Chat(std::string(20'000, '~')));
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->json()["error"]["code"], "context_length_exceeded");
  Json streamed = Chat(std::string(20'000, '~'));
  streamed["stream"] = true;
  // It is known before the stream begins.
  EXPECT_EQ(Post("/v1/chat/completions", streamed)->status, 400);
}

TEST_F(RefusalTest, TemplateVariables) {
  Json request = Chat();
  request["chat_template_kwargs"] = {{"messages", 1}};
  EXPECT_EQ(Post("/v1/chat/completions", request)->status, 400);
}

TEST_F(RefusalTest, MoreAllowedToolsThanThereMayBe) {
  Json request = Chat("Who?", 1);
  const Json tool = {{"type", "function"}, {"function", {{"name", "f"}}}};
  request["tools"] = Json::array({tool});
  request["tool_choice"] = {{"type", "allowed_tools"},
                            {"allowed_tools", {{"mode", "auto"}, {"tools", Json(128, tool)}}}};
  EXPECT_EQ(Post("/v1/chat/completions", request)->status, 200);
  request["tool_choice"]["allowed_tools"]["tools"].push_back(tool);
  const auto answer = Post("/v1/chat/completions", request);
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->json()["error"]["param"], "tool_choice.allowed_tools.tools");
}

TEST_F(RefusalTest, ToolsWithWhichTheTemplateTakesTooMuchMemory) {
  Json request = Chat();
  request["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters":
      {"type": "object", "enum": []}}}])");
  request["tools"][0]["function"]["parameters"]["enum"] = std::vector<int>(140'000, 1);
  const auto answer = Post("/v1/chat/completions", request);
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->json()["error"]["param"], "messages");
  EXPECT_THAT(std::string(answer->json()["error"]["message"]),
              testing::HasSubstr("rendering takes too much memory"));
}

TEST_F(RefusalTest, BodiesThatAreNotJson) {
  for (const char* body :
       {"", "{", "[]", "\xFF", "{\"messages\": \"\\ud800\"}", "nul", "{\"a\":1}}"}) {
    for (const char* path :
         {"/v1/chat/completions", "/v1/responses", "/v1/completions", "/tokenize", "/detokenize",
          "/apply-template", "/api/chat", "/api/generate", "/api/show"}) {
      const auto answer = Begin("POST", path, body);
      answer->AwaitEnd();
      EXPECT_EQ(answer->status, 400) << path << " " << body;
      EXPECT_TRUE(answer->json().contains("error"));
    }
  }
}

TEST_F(RefusalTest, PathsAndMethods) {
  EXPECT_EQ(Get("/v1/nothing")->status, 404);
  EXPECT_EQ(Get("/")->status, 404);
  EXPECT_EQ(Get("/v1/models/other")->status, 404);
  EXPECT_EQ(Get("/v1/models/other")->json()["error"]["code"], "model_not_found");
  const auto wrong = Get("/v1/chat/completions");
  EXPECT_EQ(wrong->status, 405);
  ASSERT_EQ(wrong->headers.size(), 1u);
  EXPECT_EQ(wrong->headers[0].name, "Allow");
  EXPECT_EQ(wrong->headers[0].value, "POST");
  // Each API's clients read errors in its own form.
  const auto ollama = Get("/api/chat");
  EXPECT_EQ(ollama->status, 405);
  EXPECT_EQ(ollama->json()["error"], "/api/chat takes only POST");
  ASSERT_EQ(ollama->headers.size(), 1u);
  EXPECT_EQ(ollama->headers[0].value, "POST");
  for (const char* const path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    const auto anthropic = Get(path);
    EXPECT_EQ(anthropic->status, 405);
    EXPECT_EQ(anthropic->json()["type"], "error");
    EXPECT_EQ(anthropic->json()["error"]["type"], "invalid_request_error");
    ASSERT_EQ(anthropic->headers.size(), 1u);
    EXPECT_EQ(anthropic->headers[0].name, "Allow");
  }
  const auto batches = Get("/v1/messages/batches");
  EXPECT_EQ(batches->status, 404);
  EXPECT_EQ(batches->json()["error"]["type"], "not_found_error");
  // Clients try again after a status of 500 and more.
  for (const char* const path : {"/embedding", "/v1/responses/resp_1"}) {
    const auto missing = Post(path, Json::object());
    EXPECT_EQ(missing->status, 404) << path;
    EXPECT_EQ(missing->json()["error"]["code"], "not_found");
    EXPECT_THAT(missing->json()["error"]["message"].get<std::string>(),
                testing::HasSubstr(": this server"));
  }
  EXPECT_EQ(Post("/api/create", Json::object())->status, 404);
  // Ollama's clients read its own form.
  EXPECT_TRUE(Post("/api/pull", Json::object())->json()["error"].is_string());
}

TEST_F(RefusalTest, SeveralFormsOfOneAnswer) {
  Json request = Chat("Who?", 4);
  request["grammar"] = "root ::= \"ab\"";
  request["response_format"] = {{"type", "text"}};
  const Json answer = Post("/v1/chat/completions", request)->json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "ab");
  request["response_format"] = {{"type", "json_object"}};
  EXPECT_EQ(Post("/v1/chat/completions", request)->json()["error"]["param"], "grammar");
  request.erase("response_format");
  request["json_schema"] = Json::object();
  EXPECT_EQ(Post("/v1/chat/completions", request)->json()["error"]["param"], "grammar");
  request.erase("grammar");
  request["response_format"] = {{"type", "json_object"}};
  EXPECT_EQ(Post("/v1/chat/completions", request)->json()["error"]["param"], "json_schema");
}

TEST_F(RefusalTest, SchemasWithTooManyValues) {
  const Json schema = {{"enum", std::vector<int>(8190, 1)}};
  Json larger = schema;
  larger["enum"].push_back(1);
  const auto refused = [&](const std::string& path, const Json& fields) -> std::string {
    Json request = Chat("Who?", 1);
    request.update(fields);
    const auto answer = Post(path, request);
    if (answer->status == 200) return "nothing";
    EXPECT_EQ(answer->status, 400) << answer->body;
    EXPECT_THAT(answer->body, testing::HasSubstr("has more than 8192 values"));
    const Json error = answer->json()["error"];
    const std::string message = error.is_string() ? error : error["message"];
    return message.substr(0, message.find(' '));
  };
  EXPECT_EQ(refused("/v1/chat/completions", {{"json_schema", schema}}), "nothing");
  EXPECT_EQ(refused("/v1/chat/completions", {{"json_schema", larger}}), "json_schema");
  EXPECT_EQ(refused("/v1/chat/completions", {{"guided_json", larger.dump()}}), "guided_json");
  EXPECT_EQ(refused("/api/chat", {{"format", larger}, {"stream", false}}), "format");
  const Json format = {{"format", {{"type", "json_schema"}, {"schema", larger}}}};
  EXPECT_EQ(refused("/v1/messages", {{"output_config", format}}), "output_config.format.schema");
}

TEST_F(RefusalTest, ASchemaThatIsTooLargeForItsMemory) {
  Json patterns = Json::array();
  for (int i = 0; i < 100; ++i) patterns.push_back({{"pattern", "a" + std::to_string(i) + ".*b"}});
  Json request = Chat("Who?", 4);
  request["json_schema"] = {{"allOf", patterns}};
  const auto answer = Post("/v1/chat/completions", request);
  // With a status at which clients do not try again.
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->json()["error"]["param"], "json_schema");
}

// It is small enough to be read, but what it becomes is not.
TEST_F(RefusalTest, AGrammarThatIsTooLargeForItsMemory) {
  std::string grammar = "root ::= ";
  for (int i = 0; i < 4000; ++i) grammar += "\"a\"? ";
  grammar += "\"b\"";
  Json chat = Chat("Who?", 4);
  Json completion = {{"prompt", "a"}, {"max_tokens", 4}};
  chat["grammar"] = completion["grammar"] = grammar;
  for (const auto& answer :
       {Post("/v1/chat/completions", chat), Post("/v1/completions", completion)}) {
    EXPECT_EQ(answer->status, 400) << answer->body;
    EXPECT_EQ(answer->json()["error"]["param"], "grammar");
    EXPECT_EQ(answer->json()["error"]["code"], nullptr);
  }
}

TEST_F(RefusalTest, ReasoningByTheNameThatWasSent) {
  const TinyModelFile model(support::SpecGqa(), kContextTokens, {.weights = Scheme::kQc8w});
  const auto engine = Unwrap(Engine::Load(
      model.path(), {.num_threads = 1, .context_tokens = kContextTokens, .max_constraints = 1}));
  WorkQueue work(1, 8);
  const auto models = OneModel(*engine, "plain");
  Api api(*models, work, {.version = "1.2.3"});
  const auto post = [&](const char* path, const Json& body) {
    auto answer = std::make_shared<RecordedAnswer>();
    api.Handle({.method = "POST", .path = path, .body = Written(body)}, answer);
    answer->AwaitEnd();
    return answer;
  };
  const std::vector<std::pair<Json, std::string>> cases = {
      {{{"enable_thinking", true}}, "enable_thinking"},
      {{{"chat_template_kwargs", {{"enable_thinking", true}}}},
       "chat_template_kwargs.enable_thinking"},
      {{{"reasoning_effort", "low"}}, "reasoning_effort"},
      {{{"reasoning", {{"effort", "high"}}}}, "reasoning.effort"}};
  for (const auto& [fields, name] : cases) {
    Json request = Chat("Who?", 1);
    request.update(fields);
    for (const char* const path : {"/v1/chat/completions", "/apply-template"}) {
      const auto answer = post(path, request);
      EXPECT_EQ(answer->status, 400) << path << " " << name;
      EXPECT_EQ(answer->json()["error"]["param"], name) << path;
    }
  }
  for (const Json& off : {Json{{"enable_thinking", false}}, Json{{"reasoning_effort", "none"}}}) {
    Json request = Chat("Who?", 1);
    request.update(off);
    EXPECT_EQ(post("/v1/chat/completions", request)->status, 200) << off;
  }
  for (const Json& think : {Json(true), Json("low")}) {
    Json request = Chat("Who?", 1);
    request["think"] = think;
    EXPECT_THAT(post("/api/chat", request)->json()["error"].get<std::string>(),
                testing::StartsWith("think is not supported"));
  }
  work.Close(std::chrono::milliseconds(0));
}

TEST_F(RefusalTest, CompletionFieldsByName) {
  const std::vector<RefusedField> cases = {{"prompt", "null", nullptr},
                                           {"prompt", "[]", nullptr},
                                           {"prompt", "[5, \"a\"]", "prompt[0]"},
                                           {"prompt", "[99999]", nullptr},
                                           {"prompt", "[[1], [99999]]", "prompt[1]"},
                                           {"prompt", "[-1]", nullptr},
                                           {"prompt", "[18446744073709551615]", nullptr},
                                           {"prompt", "{}", nullptr},
                                           {"suffix", "\"x\"", nullptr},
                                           {"best_of", "2", nullptr},
                                           {"n_probs", "21", nullptr},
                                           {"logit_bias", R"({"99999": 1})", nullptr},
                                           {"logprobs", "6", nullptr},
                                           {"logprobs", "true", nullptr},
                                           {"echo", "1", nullptr}};
  for (const RefusedField& tested : cases) {
    SCOPED_TRACE(std::string(tested.field) + ": " + tested.value);
    Json request = {{"prompt", "a"}, {"max_tokens", 1}};
    request[tested.field] = Json::parse(tested.value);
    const auto answer = Post("/v1/completions", request);
    EXPECT_EQ(answer->status, 400);
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], tested.param == nullptr ? tested.field : tested.param);
    // Nothing here is too long.
    EXPECT_NE(error["code"], "context_length_exceeded");
  }
}

}  // namespace
}  // namespace cria::server
