// The plan of a server against what the server takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/demo_model.h"
#include "cli/serve/server_program.h"
#include "serve/http/raw_client.h"
#include "support/run_program.h"
#include "support/sanitizers.h"

namespace cria::tests {
namespace {

using support::RawClient;

constexpr double kTolerance = 256 << 10;

class ServeMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (support::kHeapIsSanitized) GTEST_SKIP() << "the sanitizer's memory would be measured";
#if !defined(__x86_64__)
    GTEST_SKIP() << "the figures of other processors are computed";
#endif
  }

  static nlohmann::json Plan(const std::vector<std::string>& options) {
    std::vector<std::string> words = {CRIA_PROGRAM, "plan", "-m",      DemoModel(),
                                      "-t",         "2",    "--serve", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const auto result = support::RunProgram(words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return nlohmann::json::parse(result.output);
  }

  static double LineBytes(const nlohmann::json& plan, const std::string& begin) {
    double bytes = 0.0;
    for (const auto& line : plan["lines"]) {
      if (line["name"].get<std::string>().starts_with(begin)) bytes += line["bytes"].get<double>();
    }
    return bytes;
  }

  static void Report(const char* name, const ServerProgram& server, const nlohmann::json& plan) {
    std::printf(
        "%-12s private %9zu planned %9.0f, of these for the server %9.0f | mapped %9zu "
        "planned %9.0f | peak %9zu planned %9.0f | virtual %9zu planned %9.0f\n",
        name, server.MemoryBytes("RssAnon"), plan["private_bytes"].get<double>(),
        LineBytes(plan, "server"), server.MemoryBytes("RssFile"),
        plan["mapped_bytes"].get<double>(), server.MemoryBytes("VmHWM"),
        plan["peak_bytes"].get<double>(), server.MemoryBytes("VmPeak"),
        plan["address_space_bytes"].get<double>());
  }

  static std::string ChatRequest(const std::string& text) {
    const std::string body =
        nlohmann::json({{"temperature", 0}, {"messages", {{{"role", "user"}, {"content", text}}}}})
            .dump();
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
};

TEST_F(ServeMemory, AfterAnswersItHasWhatIsPlannedWithoutClients) {
  const nlohmann::json plan = Plan({"-np", "2"});
  const ServerProgram server({"--port", "0", "-np", "2"});
  RawClient client = RawClient::ToPort(server.port());
  // Each begins differently, and all of it goes through the model.
  for (int i = 0; i < 12; ++i) {
    std::string text = std::to_string(i);
    for (int k = 0; k < 40; ++k) text += " Where do you run?";
    EXPECT_EQ(client.Ask(ChatRequest(text)).status, 200);
  }
  Report("answers", server, plan);
  const double planned = plan["private_bytes"].get<double>();
  EXPECT_LE(server.MemoryBytes("RssAnon"), planned + kTolerance);
  // What clients may take, this one does not.
  EXPECT_GE(server.MemoryBytes("RssAnon") + 2 * kTolerance,
            planned - LineBytes(plan, "server") - LineBytes(plan, "constraints"));
  EXPECT_LE(server.MemoryBytes("VmHWM"), plan["peak_bytes"].get<double>() + kTolerance);
  EXPECT_LE(server.MemoryBytes("VmPeak"), plan["address_space_bytes"].get<double>());
}

TEST_F(ServeMemory, AsManyClientsAsMayBeTakeNoMoreThanIsPlanned) {
  const std::vector<std::string> options = {"-np", "2", "--max-connections", "200"};
  const nlohmann::json plan = Plan(options);
  std::vector<std::string> server_options = options;
  server_options.insert(server_options.end(), {"--port", "0"});
  const ServerProgram server(server_options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(RawClient::ToPort(server.port()));
    // Heads as long as may be, and bodies that do not end; most are refused because all bodies
    // together are bounded.
    clients.back().Send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX: " +
                        std::string(8000, 'x') + "\r\nContent-Length: 1000000\r\n\r\n");
    clients.back().SendSome(std::string(900'000, 'y'));
  }
  // Answered after all of the others were read.
  EXPECT_NE(clients.back().Read().status, 0);
  Report("connections", server, plan);
  EXPECT_LE(server.MemoryBytes("RssAnon"), plan["private_bytes"].get<double>() + kTolerance);
  EXPECT_LE(server.MemoryBytes("VmHWM"), plan["peak_bytes"].get<double>() + kTolerance);
}

TEST_F(ServeMemory, AHostileBodyTakesNoMoreThanIsPlanned) {
  const nlohmann::json plan = Plan({"-np", "2"});
  const ServerProgram server({"--port", "0", "-np", "2"});
  RawClient client = RawClient::ToPort(server.port());
  // As many values as a body holds.
  for (const std::string& value : {std::string("1,"), std::string("[],"), std::string("{},")}) {
    std::string body = R"({"messages":[)";
    while (body.size() + value.size() < (1 << 20) - 8) body += value;
    body += "1]}";
    client.Send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    EXPECT_EQ(client.Read().status, 400) << value;
  }
  Report("values", server, plan);
  EXPECT_LE(server.MemoryBytes("VmHWM"), plan["peak_bytes"].get<double>() + kTolerance);
}

}  // namespace
}  // namespace cria::tests
