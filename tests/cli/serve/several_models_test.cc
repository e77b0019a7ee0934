// cria-serve with several models: what it says when it starts, and what it takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/demo_model.h"
#include "cli/serve/json_request.h"
#include "cli/serve/server_program.h"
#include "server/http/raw_client.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"

namespace cria::tests {
namespace {

namespace fs = std::filesystem;
using support::RawClient;
using testing::HasSubstr;
using testing::Not;

class ServeSeveralModels : public testing::Test {
 protected:
  ServeSeveralModels() {
    for (const char* const name : {"a.cria", "b.cria"}) {
      fs::copy_file(DemoModel(), models_ / name);
    }
  }

  static nlohmann::json Question(const std::string& model) {
    return {{"model", model},
            {"temperature", 0},
            {"max_tokens", 8},
            {"messages", {{{"role", "user"}, {"content", "Where do you run?"}}}}};
  }
  static std::string Ask(RawClient& client, const std::string& model) {
    const auto answer = client.Ask(JsonRequest("/v1/chat/completions", Question(model)));
    EXPECT_EQ(answer.status, 200) << answer.body;
    if (answer.status != 200) return "";
    return nlohmann::json::parse(answer.body)["choices"][0]["message"]["content"];
  }
  static support::RunResult Start(const std::vector<std::string>& options) {
    std::vector<std::string> words = {support::kServeProgram, "--port", "0"};
    words.insert(words.end(), options.begin(), options.end());
    return support::RunProgram(words);
  }
  // What a server of one model takes at most, by its plan.
  static uint64_t PlannedBytes() {
    const auto plan = support::RunProgram(
        {support::kCriaProgram, "plan", "-m", DemoModel(), "-t", "2", "--serve", "--json"});
    EXPECT_EQ(plan.exit_code, 0) << plan.error;
    return nlohmann::json::parse(plan.output)["peak_bytes"];
  }

  const support::TemporaryDirectory models_;
};

TEST_F(ServeSeveralModels, OneFitsAtATime) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "the sanitizer's memory would be measured";
  const std::string alone = [] {
    const ServerProgram server({"--port", "0"});
    RawClient client = RawClient::ToPort(server.port());
    return Ask(client, "any");
  }();
  // As much as one takes, and a list of two.
  const uint64_t limit = PlannedBytes() + (512 << 10);
  ServerProgram server(
      {"--port", "0", "--models", models_.path(), "--memory-limit", std::to_string(limit)});
  EXPECT_THAT(server.output(), HasSubstr("2 models, at http://"));
  RawClient client = RawClient::ToPort(server.port());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Ask(client, i % 2 == 0 ? "a" : "b"), alone);
    EXPECT_LE(server.MemoryBytes("VmRSS"), limit);
  }
  EXPECT_LE(server.MemoryBytes("VmHWM"), limit);
  const auto metrics = client.Ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(metrics.body, HasSubstr("cria_model_loads_total{model=\"a\"} 5\n"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.WaitForEnd(), 0);
}

TEST_F(ServeSeveralModels, PromptsOfEachAreKeptWhenItIsGivenUp) {
  const support::TemporaryDirectory folder;
  ServerProgram server({"--port", "0", "-c", "512", "--models", models_.path(), "--prefix-cache",
                        folder / "prompts", "--keep-alive", "0"});
  RawClient client = RawClient::ToPort(server.port());
  nlohmann::json question = Question("a");
  std::string text;
  while (text.size() < 1100) text += "Hello! Who are you? ";
  question["messages"][0]["content"] = text;
  for (const size_t least : {0, 100}) {
    const auto answer = client.Ask(JsonRequest("/v1/chat/completions", question));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto json = nlohmann::json::parse(answer.body);
    EXPECT_GE(json["usage"]["prompt_tokens_details"]["cached_tokens"], least);
    // Waits until it is gone.
    for (std::string listed = R"("loaded")"; listed.contains(R"("loaded")");) {
      listed = client.Ask("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n").body;
    }
  }
  EXPECT_TRUE(fs::is_directory(folder / "prompts/a"));
}

TEST_F(ServeSeveralModels, AModelThatCannotBeServedIsToldAndOthersAre) {
  std::ofstream(models_ / "c.cria") << "this is no model";
  std::ofstream(models_ / "notes.txt") << "this is none, either";
  const ServerProgram server({"--port", "0", "--models", models_.path(), "-m", DemoModel()});
  EXPECT_THAT(server.output(), HasSubstr("4 models, at http://"));
  EXPECT_THAT(server.output(), HasSubstr("cria-serve: c cannot be served now: "));
  RawClient client = RawClient::ToPort(server.port());
  EXPECT_EQ(client.Ask(JsonRequest("/v1/chat/completions", Question("c"))).status, 500);
  EXPECT_EQ(client.Ask(JsonRequest("/v1/chat/completions", Question("d"))).status, 404);
  EXPECT_NE(Ask(client, "demo"), "");
}

TEST_F(ServeSeveralModels, WhatDoesNotFitIsToldAtTheStart) {
  const auto started = Start({"--models", models_.path(), "--memory-limit", "20M", "-c", "512"});
  EXPECT_NE(started.exit_code, 0);
  EXPECT_THAT(started.error, HasSubstr("a cannot be served now: the model needs "));
  EXPECT_THAT(started.error, HasSubstr("b cannot be served now: the model needs "));
}

TEST_F(ServeSeveralModels, WrongOptions) {
  const auto refused = [](const std::vector<std::string>& options) {
    const auto started = Start(options);
    EXPECT_EQ(started.exit_code, 2) << started.error;
    return started.error;
  };
  EXPECT_THAT(refused({}), HasSubstr("no model is given"));
  EXPECT_THAT(refused({"--models", models_ / "none"}), HasSubstr("is no folder of models"));
  const support::TemporaryDirectory empty;
  EXPECT_THAT(refused({"--models", empty.path()}), HasSubstr("has no model files (.cria)"));
  EXPECT_THAT(refused({"--models", models_.path(), "-m", models_ / "a.cria"}),
              HasSubstr("the same name"));
  EXPECT_THAT(refused({"--models", models_.path(), "--alias", "x"}), HasSubstr("--alias"));
  EXPECT_THAT(refused({"--models", models_.path(), "--keep-alive", "soon"}),
              HasSubstr("a time such as"));
}

}  // namespace
}  // namespace cria::tests
