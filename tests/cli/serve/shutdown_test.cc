#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/serve/json_request.h"
#include "cli/serve/server_program.h"
#include "server/http/raw_client.h"
#include "support/files.h"
#include "support/paths.h"

namespace cria::tests {
namespace {

using support::RawClient;
using support::RawResponse;
using testing::HasSubstr;

// A request whose answer does not end before the context is full: the model's stop tokens are
// forbidden.
std::string EndlessRequest() {
  nlohmann::json bias = nlohmann::json::object();
  const auto config = nlohmann::json::parse(
      support::ReadFile(std::string(support::kDemoCheckpoint) + "/generation_config.json"));
  for (const int id : config.at("eos_token_id")) bias[std::to_string(id)] = -100;
  return JsonRequest("/v1/chat/completions",
                     {{"stream", true},
                      {"temperature", 0},
                      {"logit_bias", bias},
                      {"max_tokens", 400},
                      {"messages", {{{"role", "user"}, {"content", "Tell me a story."}}}}});
}

TEST(ServeEnds, WithSuccessAfterASignal) {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
    ServerProgram server({"--port", "0"});
    server.Signal(number);
    EXPECT_EQ(server.WaitForEnd(), 0) << server.output();
  }
}

TEST(ServeEnds, WhenAnswersUnderWayAreSent) {
  ServerProgram server({"--port", "0"});
  RawClient client = RawClient::ToPort(server.port());
  client.Send(EndlessRequest());
  const std::string begin = client.ReadUntil("data: ");
  EXPECT_THAT(begin, HasSubstr("200 OK"));
  server.Signal(SIGTERM);
  EXPECT_THAT(client.ReadUntil("[DONE]"), testing::EndsWith("[DONE]"));
  EXPECT_EQ(server.WaitForEnd(), 0);
}

TEST(ServeEnds, AfterItsTimeAlthoughAnswersGoOn) {
  ServerProgram server({"--port", "0", "--shutdown-timeout", "0"});
  RawClient client = RawClient::ToPort(server.port());
  client.Send(EndlessRequest());
  client.ReadUntil("data: ");
  server.Signal(SIGTERM);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(server.WaitForEnd(), 0);
}

TEST(ServeEnds, AtOnceAfterASecondSignal) {
  ServerProgram server({"--port", "0", "--shutdown-timeout", "1000", "-np", "1"});
  // A client that does not read keeps its answer from ending.
  RawClient client = RawClient::ToPort(server.port());
  client.Send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n");
  RawClient other = RawClient::ToPort(server.port());
  EXPECT_EQ(other.Ask("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  server.Signal(SIGTERM);
  // It has begun to end when it does not listen any more.
  EXPECT_TRUE(other.IsClosed());
  server.Signal(SIGTERM);
  EXPECT_EQ(server.WaitForEnd(), -SIGTERM);
}

TEST(ServeEnds, AnAnswerWhoseClientIsGone) {
  ServerProgram server({"--port", "0", "-np", "1"});
  {
    RawClient client = RawClient::ToPort(server.port());
    client.Send(EndlessRequest());
    client.ReadUntil("data: ");
  }
  // The only sequence is free again.
  RawClient next = RawClient::ToPort(server.port());
  next.Send(EndlessRequest());
  EXPECT_THAT(next.ReadUntil("data: "), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace cria::tests
