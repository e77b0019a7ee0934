// llama-server's paths, and /v1/models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "llm/scripted_clock.h"
#include "server/api/api_fixture.h"
#include "support/temporary_directory.h"
#include "support/thermal_zone.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

using LlamaServerPathsTest = ApiTest;

TEST_F(LlamaServerPathsTest, Models) {
  const Json list = Get("/v1/models")->json();
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "tiny");
  EXPECT_EQ(list["data"][0]["meta"]["n_ctx"], kContextTokens);
  EXPECT_EQ(Get("/v1/models/tiny")->json(), list["data"][0]);
}

TEST_F(LlamaServerPathsTest, TokenizeAndDetokenize) {
  const std::string text = "Où? <|eot_id|>";
  const Json plain = Post("/tokenize", {{"content", text}, {"parse_special", false}})->json();
  const Json special = Post("/tokenize", {{"content", text}})->json();
  EXPECT_LT(special["tokens"].size(), plain["tokens"].size());
  EXPECT_EQ(Post("/detokenize", plain)->json()["content"], text);
  const Json with_bos = Post("/tokenize", {{"content", text}, {"add_special", true}})->json();
  EXPECT_EQ(with_bos["tokens"].size(), special["tokens"].size() + 1);
  const Json pieces = Post("/tokenize", {{"content", "ab"}, {"with_pieces", true}})->json();
  EXPECT_TRUE(pieces["tokens"][0].contains("piece"));
  // Bytes that are no character are replaced.
  const auto ids = Unwrap(engine_->tokenizer().Encode("a\xC3", {.add_bos = false}));
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(Post("/detokenize", {{"tokens", {ids[0], ids[1]}}})->json()["content"],
            "a\xEF\xBF\xBD");
  EXPECT_EQ(Post("/detokenize", {{"tokens", {"a"}}})->status, 400);
  const size_t end = engine_->tokenizer().vocab_size();
  EXPECT_EQ(Post("/detokenize", {{"tokens", {end - 1}}})->status, 200);
  for (const Json& id : {Json(end), Json(-1), Json(UINT64_MAX)}) {
    const auto answer = Post("/detokenize", {{"tokens", {ids[0], id}}});
    EXPECT_EQ(answer->status, 400) << id;
    EXPECT_THAT(answer->json()["error"]["message"].get<std::string>(),
                testing::HasSubstr("has " + id.dump() + ", but ids of this model are 0 to"));
  }
}

TEST_F(LlamaServerPathsTest, ApplyTemplate) {
  EXPECT_EQ(Post("/apply-template", Chat("Who?"))->json()["prompt"], Rendered("Who?"));
  Json request = Chat("Who?");
  request["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
  EXPECT_THAT(
      std::string(Post("/apply-template", request)->json()["prompt"]),
      testing::StartsWith(R"(<tools>{"type": "function", "function": {"name": "f"}}</tools>)"));
  // Numbers as Python reads and writes them.
  request["tools"] =
      ReadJsonText(R"([{"a": [18446744073709551616, -9223372036854775809, 1.50]}])", "the tools");
  request["tools"][0]["type"] = "function";
  request["tools"][0]["function"] = {{"name", "f"}};
  EXPECT_THAT(std::string(Post("/apply-template", request)->json()["prompt"]),
              HasSubstr(R"({"a": [18446744073709551616, -9223372036854775809, 1.5], )"));
  request["tool_choice"] = "none";
  EXPECT_EQ(Post("/apply-template", request)->json()["prompt"], Rendered("Who?"));
}

TEST_F(LlamaServerPathsTest, HealthAndProperties) {
  EXPECT_EQ(Get("/health")->json(), Json({{"status", "ok"}}));
  const Json props = Get("/props")->json();
  EXPECT_EQ(props["total_slots"], 2);
  EXPECT_EQ(props["model_alias"], "tiny");
  EXPECT_EQ(props["chat_template"], kToolTemplate);
  EXPECT_EQ(props["thinking_variable"], "enable_thinking");
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], kContextTokens);
  uint64_t bytes = 0;
  for (const Json& line : props["memory_plan"]) bytes += line["bytes"].get<uint64_t>();
  EXPECT_EQ(bytes, props["memory"]["planned_private_bytes"].get<uint64_t>() +
                       props["memory"]["planned_mapped_bytes"].get<uint64_t>());
}

// The value of a metric.
double Metric(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1.0 : std::stod(text.substr(at + name.size() + 2));
}

// A server on a board that is at its limit.
class HotServerTest : public ApiTest {
 protected:
  HotServerTest()
      : ApiTest(2, 8,
                {.max_celsius = 75.0,
                 .sensor_root = Root(),
                 .time = {.now = ScriptedClock::Now, .sleep = ScriptedClock::Advance}}) {}

 private:
  static std::string Root() {
    static const support::TemporaryDirectory root;
    support::WriteThermalZone(root.path(), 0, "cpu-thermal", "75000\n");
    return root.path();
  }
};

TEST_F(HotServerTest, MetricsTellOfTheHeat) {
  Post("/v1/chat/completions", Chat("Who?", 9));
  const std::string text = Get("/metrics")->body;
  EXPECT_EQ(Metric(text, "cria_temperature_max_celsius"), 75);
  EXPECT_EQ(Metric(text, "cria_temperature_celsius"), 75);
  EXPECT_EQ(Metric(text, "cria_heat_threads"), 1);
  EXPECT_GT(Metric(text, "cria_heat_pause_seconds_total"), 0);
}

TEST_F(LlamaServerPathsTest, Metrics) {
  const Json usage = Post("/v1/chat/completions", Chat("Who?", 9))->json()["usage"];
  const auto answer = Get("/metrics");
  EXPECT_THAT(answer->content_type, HasSubstr("text/plain"));
  const std::string& text = answer->body;
  EXPECT_EQ(Metric(text, "cria_answers_total"), 1);
  EXPECT_EQ(Metric(text, "cria_tokens_predicted_total"), 9);
  EXPECT_EQ(Metric(text, "cria_prompt_tokens_total"), usage["prompt_tokens"].get<double>());
  EXPECT_EQ(Metric(text, "cria_kv_cache_pages"), kContextTokens / kKvPageTokens);
  EXPECT_GT(Metric(text, "cria_kv_cache_tokens"), 0);
  EXPECT_GT(Metric(text, "cria_memory_private_planned_bytes"), 0);
  // Each metric is described.
  std::istringstream lines(text);
  size_t values = 0;
  size_t comments = 0;
  for (std::string line; std::getline(lines, line);) ++(line.starts_with("#") ? comments : values);
  EXPECT_EQ(comments, 2 * values);
}

}  // namespace
}  // namespace cria::server
