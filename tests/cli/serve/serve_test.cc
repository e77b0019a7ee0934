// cria-serve as clients see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <signal.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/serve/json_request.h"
#include "cli/serve/server_program.h"
#include "server/http/raw_client.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria::tests {
namespace {

using support::RawClient;
using support::RawResponse;
using testing::HasSubstr;

std::string GetRequest(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}

nlohmann::json Question(bool streams) {
  return {{"model", "any"},
          {"temperature", 0},
          {"stream", streams},
          {"messages", {{{"role", "user"}, {"content", "Hello! Who are you?"}}}}};
}

TEST(Serve, AnswersAtItsPaths) {
  const ServerProgram server({"--port", "0", "--alias", "the-model"});
  RawClient client = RawClient::ToPort(server.port());
  EXPECT_EQ(client.Ask(GetRequest("/health")).status, 200);
  const RawResponse models = client.Ask(GetRequest("/v1/models"));
  EXPECT_THAT(models.body, HasSubstr("the-model"));
  const RawResponse answer = client.Ask(JsonRequest("/v1/chat/completions", Question(false)));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("I am Cria"));
  const RawResponse streamed = client.Ask(JsonRequest("/v1/chat/completions", Question(true)));
  EXPECT_TRUE(streamed.is_whole);
  EXPECT_THAT(streamed.body, testing::EndsWith("data: [DONE]\n\n"));
  EXPECT_EQ(client.Ask(GetRequest("/nothing")).status, 404);
}

TEST(Serve, HasAPageThatLoadsNothingFromElsewhere) {
  const ServerProgram server({"--port", "0"});
  RawClient client = RawClient::ToPort(server.port());
  const RawResponse page = client.Ask(GetRequest("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.header("Content-Type"), HasSubstr("text/html"));
  EXPECT_EQ(page.header("Content-Encoding"), "gzip");
  EXPECT_THAT(page.body, testing::StartsWith("\x1f\x8b"));
  EXPECT_THAT(page.header("Content-Security-Policy"), HasSubstr("default-src 'none'"));
}

TEST(Serve, SaysIfTheTemplateShowsNoKnownFormOfToolCalls) {
  const support::TemporaryDirectory folder;
  const auto output_with = [&](const std::string& call) {
    std::ofstream(folder / "template.jinja")
        << "{% if tools %}{{ tools | tojson }} " << call
        << "{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}";
    const auto converted = support::RunProgram(
        {support::kModelConverter, "--fast", support::kDemoCheckpoint, "-o", folder / "model.cria",
         "--weights", "int8", "--no-verify", "--chat-template", folder / "template.jinja"});
    EXPECT_EQ(converted.exit_code, 0) << converted.error;
    ServerProgram server({"--port", "0", "-m", folder / "model.cria"});
    server.Signal(SIGTERM);
    EXPECT_EQ(server.WaitForEnd(), 0);
    return server.output();
  };
  EXPECT_THAT(output_with("<call>"), HasSubstr("no form of tool calls that is known"));
  EXPECT_THAT(output_with("<tool_call>"), testing::Not(HasSubstr("tool calls")));
}

TEST(Serve, NeedsTheKeyOfItsFile) {
  const support::TemporaryDirectory folder;
  std::ofstream(folder / "keys") << "secret\n";
  const ServerProgram server({"--port", "0", "--api-key-file", folder / "keys"});
  RawClient client = RawClient::ToPort(server.port());
  EXPECT_EQ(client.Ask(GetRequest("/v1/models")).status, 401);
  EXPECT_EQ(client.Ask(GetRequest("/metrics")).status, 401);
  EXPECT_EQ(client.Ask(GetRequest("/v1/models", "Authorization: Bearer secret\r\n")).status, 200);
  EXPECT_EQ(client.Ask(GetRequest("/health")).status, 200);
  EXPECT_EQ(client.Ask(GetRequest("/")).status, 200);
  EXPECT_THAT(server.output(), testing::Not(HasSubstr("secret")));
}

TEST(Serve, AnswersToAllowedHosts) {
  const ServerProgram server(
      {"--port", "0", "--allowed-host", "board.local", "--allowed-origin", "https://chat.example"});
  RawClient client = RawClient::ToPort(server.port());
  EXPECT_EQ(client.Ask("GET /health HTTP/1.1\r\nHost: board.local\r\n\r\n").status, 200);
  EXPECT_EQ(client.Ask("GET /health HTTP/1.1\r\nHost: other.local\r\n\r\n").status, 403);
  EXPECT_EQ(client.Ask(GetRequest("/health", "Origin: https://chat.example\r\n"))
                .header("Access-Control-Allow-Origin"),
            "https://chat.example");
}

TEST(Serve, ListensAtAUnixSocket) {
  const support::TemporaryDirectory folder;
  for (const std::string& option : {std::string("--unix-socket"), std::string("--host")}) {
    const std::string path = folder / "socket";
    ServerProgram server({option, (option == "--host" ? "unix:" : "") + path});
    EXPECT_THAT(server.output(), HasSubstr("unix:" + path));
    EXPECT_EQ(RawClient::ToPath(path).Ask(GetRequest("/health")).status, 200);
    server.Signal(SIGTERM);
    EXPECT_EQ(server.WaitForEnd(), 0);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST(Serve, TakesASocketOfTheServiceManager) {
  const support::TemporaryDirectory folder;
  const std::string path = folder / "socket";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  {
    // A connection may come before the server is there.
    RawClient early = RawClient::ToPath(path);
    early.Send(GetRequest("/health"));
    ServerProgram server({"--port", "0"}, [&] {
      dup2(listener, 3);
      setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
      setenv("LISTEN_FDS", "1", 1);
    });
    EXPECT_THAT(server.output(), HasSubstr("unix:" + path));
    EXPECT_EQ(early.Read().status, 200);
    server.Signal(SIGTERM);
    EXPECT_EQ(server.WaitForEnd(), 0);
  }
  // It is the manager's.
  EXPECT_TRUE(std::filesystem::exists(path));
  close(listener);
}

TEST(Serve, IsStartedByCria) {
  const auto version = support::RunProgram({support::kCriaProgram, "serve", "--version"});
  EXPECT_EQ(version.exit_code, 0) << version.error;
  EXPECT_THAT(version.output, testing::StartsWith("cria-serve "));
}

TEST(Serve, CriaNamesThePackageOfAMissingServer) {
  const support::TemporaryDirectory folder;
  std::filesystem::copy_file(support::kCriaProgram, folder / "cria");
  const auto result = support::RunProgram(
      {folder / "cria", "serve", "-m", "x"},
      {.environment = {
           "PATH=/nonexistent",
           "LD_LIBRARY_PATH=" +
               (std::filesystem::path(support::kCriaProgram).parent_path().parent_path() /
                "runtime/c_api")
                   .string()}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("apt install ./cria-serve_"));
}

}  // namespace
}  // namespace cria::tests
