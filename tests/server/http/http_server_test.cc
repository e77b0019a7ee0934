#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/http/http_fixture.h"
#include "support/temporary_directory.h"

namespace cria::server {
namespace {

using support::RawClient;
using support::RawResponse;
using testing::HasSubstr;

class HttpServerTest : public HttpTest {};

TEST_F(HttpServerTest, AnswersRequests) {
  StartServer();
  RawClient client = Connect();
  const RawResponse got = client.Ask(Get("/some%20path/%C3%A4+b?x=1&y=%20"));
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "GET /some path/\xC3\xA4+b x=1&y=%20 : ");
  EXPECT_EQ(got.header("Content-Type"), "text/plain");
  EXPECT_EQ(got.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(got.header("Cache-Control"), "no-store");
  EXPECT_EQ(got.header("Access-Control-Allow-Origin"), "");
  // On the same connection.
  const RawResponse posted =
      client.Ask(Post("/echo", R"({"a":1})", "Content-Type: application/json\r\n"));
  EXPECT_EQ(posted.status, 200);
  EXPECT_EQ(posted.body, R"(POST /echo  application/json: {"a":1})");
}

TEST_F(HttpServerTest, TakesChunkedBodiesAndExpectations) {
  StartServer();
  RawClient client = Connect();
  EXPECT_EQ(client
                .Ask("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n")
                .body,
            "POST /echo  : abcd");
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: "
      "100-continue\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("100 Continue"));
  EXPECT_EQ(client.Ask("ab").body, "POST /echo  : ab");
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  StartServer();
  RawClient client = Connect();
  client.Send(Get("/one") + Post("/two", "2") + Get("/three"));
  EXPECT_EQ(client.Read().body, "GET /one  : ");
  EXPECT_EQ(client.Read().body, "POST /two  : 2");
  EXPECT_EQ(client.Read().body, "GET /three  : ");
}

TEST_F(HttpServerTest, APipelinedRequestWaitsForTheAnswerBefore) {
  StartServer();
  RawClient client = Connect();
  client.Send(Get("/wait") + Get("/next"));
  const Exchange exchange = Next();
  exchange.answer->Send(200, "text/plain", "late");
  EXPECT_EQ(client.Read().body, "late");
  EXPECT_EQ(client.Read().body, "GET /next  : ");
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  StartServer();
  RawClient client = Connect();
  client.Send("HEAD /path HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawResponse head = client.Read(/*has_body=*/false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), std::to_string(std::string("GET /path  : ").size()));
  EXPECT_EQ(client.Ask(Get("/next")).body, "GET /next  : ");
}

TEST_F(HttpServerTest, TheHandlerChoosesStatusAndHeaders) {
  StartServer();
  RawClient client = Connect();
  const RawResponse refused = client.Ask("DELETE /no-delete HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.header("Allow"), "GET, HEAD");
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  const HttpAnswer::Header cache = {"Cache-Control", "max-age=60"};
  exchange.answer->Send(200, "text/css", "x", {&cache, 1});
  const RawResponse cached = client.Read();
  EXPECT_EQ(cached.header("Cache-Control"), "max-age=60");
  EXPECT_EQ(cached.header("Content-Type"), "text/css");
}

TEST_F(HttpServerTest, AnswersFromAnotherThread) {
  StartServer();
  RawClient client = Connect();
  client.Send(Post("/wait", "body"));
  Exchange exchange = Next();
  EXPECT_EQ(exchange.request.body, "body");
  std::thread([&] { exchange.answer->Send(201, "text/plain", std::string(1 << 20, 'x')); }).join();
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, std::string(1 << 20, 'x'));
}

TEST_F(HttpServerTest, ADroppedRequestIsAnError) {
  StartServer();
  RawClient client = Connect();
  const RawResponse dropped = client.Ask(Get("/drop"));
  EXPECT_EQ(dropped.status, 500);
  EXPECT_THAT(dropped.body, HasSubstr("internal_error"));
  client.Send(Get("/wait"));
  Next().answer.reset();
  EXPECT_EQ(client.Read().status, 500);
}

TEST_F(HttpServerTest, RefusesOtherHostsAndOriginsAndWrongKeys) {
  HttpOptions options;
  options.access.keys = ApiKeys({"secret"});
  options.access.open_paths = {"/health"};
  StartServer(std::move(options));
  RawClient client = Connect();
  const RawResponse foreign = client.Ask("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(foreign.status, 403);
  EXPECT_THAT(foreign.body, HasSubstr("host_not_allowed"));
  EXPECT_EQ(client.Ask(Get("/health", "Origin: http://evil.example\r\n")).status, 403);
  EXPECT_EQ(client.Ask(Get("/health")).status, 200);
  const RawResponse no_key = client.Ask(Get("/v1/models"));
  EXPECT_EQ(no_key.status, 401);
  EXPECT_EQ(no_key.header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(no_key.header("Content-Type"), "application/json");
  EXPECT_EQ(client.Ask(Get("/v1/models", "Authorization: Bearer secret\r\n")).status, 200);
  EXPECT_EQ(client.Ask(Get("/v1/models", "X-API-Key: secret\r\n")).status, 200);
  // What is decoded and what is open must be the same path.
  EXPECT_EQ(client.Ask(Get("/health%2f..%2fv1/models")).status, 401);
  EXPECT_EQ(client.Ask(Get("/health%00/x")).status, 400);
}

TEST_F(HttpServerTest, ARefusedBodyIsNotTakenForTheNextRequest) {
  HttpOptions options;
  options.access.keys = ApiKeys({"secret"});
  StartServer(std::move(options));
  RawClient client = Connect();
  client.Send(Post("/echo", Get("/smuggled", "X-API-Key: secret\r\n")));
  EXPECT_EQ(client.Read().status, 401);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(HttpServerTest, OnlyAllowedOriginsGetHeadersForThem) {
  HttpOptions options;
  options.access.allowed_origins = {"https://chat.example"};
  StartServer(std::move(options));
  RawClient client = Connect();
  EXPECT_EQ(client.Ask(Get("/x")).header("Access-Control-Allow-Origin"), "");
  const RawResponse allowed = client.Ask(Get("/x", "Origin: https://chat.example\r\n"));
  EXPECT_EQ(allowed.header("Access-Control-Allow-Origin"), "https://chat.example");
  EXPECT_EQ(allowed.header("Vary"), "Origin");
  const std::string preflight =
      "OPTIONS /x HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: POST\r\n";
  const RawResponse asked = client.Ask(preflight + "Origin: https://chat.example\r\n\r\n");
  EXPECT_EQ(asked.status, 204);
  EXPECT_THAT(asked.header("Access-Control-Allow-Methods"), HasSubstr("POST"));
  EXPECT_THAT(asked.header("Access-Control-Allow-Headers"), HasSubstr("Authorization"));
  EXPECT_EQ(client.Ask(preflight + "Origin: https://evil.example\r\n\r\n").status, 403);
  const RawResponse own = client.Ask(preflight + "Origin: http://localhost\r\n\r\n");
  EXPECT_EQ(own.status, 204);
  EXPECT_EQ(own.header("Access-Control-Allow-Methods"), "");
}

TEST_F(HttpServerTest, OptionsTellsTheMethods) {
  StartServer();
  RawClient client = Connect();
  const RawResponse response = client.Ask("OPTIONS /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(response.status, 204);
  EXPECT_THAT(response.header("Allow"), HasSubstr("GET, HEAD, POST"));
}

TEST_F(HttpServerTest, ServesAUnixSocket) {
  const support::TemporaryDirectory folder;
  const std::string path = folder / "socket";
  std::vector<Listener> listeners;
  listeners.push_back(Unwrap(ListenAtPath(path)));
  server_ = Unwrap(
      HttpServer::Create({}, std::move(listeners), [](HttpRequest request, const auto& answer) {
        answer->Send(200, "text/plain", request.path);
      }));
  server_->Start();
  EXPECT_EQ(RawClient::ToPath(path).Ask(Get("/over-unix")).body, "/over-unix");
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(HttpServerTest, OtherMachinesNeedAKey) {
  const auto create = [](HttpOptions options, bool is_insecure) {
    return HttpServer::Create(
        std::move(options), Unwrap(ListenAtHost("0.0.0.0", 0)), [](HttpRequest, const auto&) {},
        is_insecure);
  };
  const auto refused = create({}, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("needs a key"));
  EXPECT_TRUE(create({}, true));
  EXPECT_TRUE(create({.access = {.keys = ApiKeys({"secret"})}}, false));
}

}  // namespace
}  // namespace cria::server
