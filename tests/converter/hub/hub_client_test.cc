#include "converter/hub/hub_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_server.h"
#include "support/untrusted_tls_server.h"
#include "support/unwrap.h"

namespace cria::hub {
namespace {

using support::HttpRequest;
using support::HttpResponse;
using support::HttpServer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Retries kFast = {.max_tries = 2, .first_pause = std::chrono::milliseconds(1)};

HubClient ClientOf(const std::string& endpoint, const std::string& token = "") {
  return Unwrap(HubClient::Create(endpoint, token, "tests", kFast));
}

TEST(HubClient, FollowsRelativeAndAbsoluteRedirects) {
  HttpServer* self = nullptr;
  HttpServer server([&](const HttpRequest& request) -> HttpResponse {
    if (request.target == "/a") return {.status = 307, .headers = {{"Location", "/b"}}};
    if (request.target == "/b") {
      return {.status = 308, .headers = {{"Location", self->url() + "/c"}}};
    }
    return {.body = "at " + request.target};
  });
  self = &server;
  HubClient client = ClientOf(server.url());
  HubAnswer answer;
  EXPECT_EQ(Unwrap(client.GetText("/a", 100, &answer)), "at /c");
}

TEST(HubClient, ARedirectInACircleEnds) {
  HttpServer server([](const HttpRequest&) -> HttpResponse {
    return {.status = 302, .headers = {{"Location", "/again"}}};
  });
  HubClient client = ClientOf(server.url());
  HubAnswer answer;
  EXPECT_THAT(client.GetText("/a", 100, &answer).error().message(),
              HasSubstr("redirects more than 5 times"));
  EXPECT_EQ(server.requests().size(), 6u);
}

TEST(HubClient, RedirectsNeverLeaveTlsOrThisMachine) {
  const Url https = Unwrap(ParseUrl("https://hub.example", "it"));
  EXPECT_TRUE(AllowedRedirect(https, "https://storage.example/x"));
  for (const char* location : {"http://hub.example/x", "http://127.0.0.1/x", "ftp://hub.example/x",
                               "file:///etc/passwd", "https://user:word@hub.example/"}) {
    EXPECT_FALSE(AllowedRedirect(https, location)) << location;
  }
  const Url local = Unwrap(ParseUrl("http://127.0.0.1:80", "it"));
  EXPECT_TRUE(AllowedRedirect(local, "http://127.0.0.1:81/x"));
  EXPECT_TRUE(AllowedRedirect(local, "https://localhost/x"));
  for (const char* location :
       {"http://hub.example/x", "https://hub.example/x", "http://10.0.0.1/x"}) {
    EXPECT_THAT(AllowedRedirect(local, location).error().message(),
                AllOf(HasSubstr("redirects to \""), HasSubstr(location)));
  }
}

TEST(HubClient, ARefusedRedirectIsNotFollowed) {
  HttpServer server([](const HttpRequest&) -> HttpResponse {
    return {.status = 302, .headers = {{"Location", "http://hub.example/stolen"}}};
  });
  HubClient client = ClientOf(server.url(), "secret");
  HubAnswer answer;
  const auto text = client.GetText("/a", 100, &answer);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message(), testing::Not(HasSubstr("secret")));
}

TEST(HubClient, AnAnswerMayHaveOnlySoManyBytes) {
  HttpServer server([](const HttpRequest& request) -> HttpResponse {
    if (request.target == "/headers") {
      return {.headers = {{"X-Long", std::string(90'000, 'x')}}, .body = "a"};
    }
    return {.body = std::string(1000, 'x')};
  });
  HubClient client = ClientOf(server.url());
  HubAnswer answer;
  EXPECT_TRUE(client.GetText("/a", 1000, &answer));
  EXPECT_THAT(client.GetText("/a", 999, &answer).error().message(),
              HasSubstr("answered with more than 999 bytes"));
  Unwrap(client.GetText("/headers", 1000, &answer));
  EXPECT_EQ(answer.answer.breakdown->kind, Breakdown::Kind::kMalformed);
}

TEST(HubClient, AnswersThatAreNotHttpAreNamed) {
  HttpServer server(
      [](const HttpRequest&) -> HttpResponse { return {.raw = "SSH-2.0-x\r\n\r\n"}; });
  HubClient client = ClientOf(server.url());
  HubAnswer answer;
  Unwrap(client.GetText("/a", 1000, &answer));
  EXPECT_EQ(answer.answer.breakdown->kind, Breakdown::Kind::kMalformed)
      << answer.answer.breakdown->sentence;
}

TEST(HubClient, SaysWhyThereIsNoConnection) {
  HubAnswer answer;
  const int port = support::UnusedPort();
  HubClient nobody = ClientOf("http://127.0.0.1:" + std::to_string(port));
  Unwrap(nobody.GetText("/a", 10, &answer));
  EXPECT_THAT(answer.answer.breakdown->sentence,
              AllOf(HasSubstr("127.0.0.1 port " + std::to_string(port)), HasSubstr("network")));
  // RFC 6761 keeps this name for hosts that do not exist.
  HubClient unknown = ClientOf("https://hub.invalid");
  Unwrap(unknown.GetText("/a", 10, &answer));
  EXPECT_THAT(answer.answer.breakdown->sentence, HasSubstr("the host hub.invalid was not found"));
  // A server without TLS, where TLS is needed.
  HttpServer plain([](const HttpRequest&) -> HttpResponse { return {}; });
  HubClient without_tls = ClientOf("https://127.0.0.1:" + std::to_string(plain.port()));
  Unwrap(without_tls.GetText("/a", 10, &answer));
  EXPECT_EQ(answer.answer.breakdown->kind, Breakdown::Kind::kNoTrust);
}

TEST(HubClient, ACertificateThatNobodySignedIsNotTrusted) {
  const support::UntrustedTlsServer server;
  HubClient client = ClientOf("https://127.0.0.1:" + std::to_string(server.port()), "secret");
  HubAnswer answer;
  Unwrap(client.GetText("/a", 10, &answer));
  EXPECT_EQ(answer.answer.status, 0);
  EXPECT_EQ(answer.answer.breakdown->kind, Breakdown::Kind::kNoTrust);
  EXPECT_THAT(answer.answer.breakdown->sentence,
              AllOf(HasSubstr("the certificate of 127.0.0.1 is not trusted"), HasSubstr("clock")));
}

TEST(HubClient, RefusesEndpointsAndTokensThatCannotBe) {
  for (const char* endpoint : {"http://hub.example", "hub.example", "", "https://a:b@hub.example",
                               "https://hub.example?x"}) {
    EXPECT_FALSE(HubClient::Create(endpoint, "", "tests", kFast)) << endpoint;
  }
  for (const std::string& token :
       std::vector<std::string>{"two\r\nHeaders: x", "a b", "\x80", std::string(5000, 'x')}) {
    const auto client = HubClient::Create("https://hub.example", token, "tests", kFast);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().message(), "the token in HF_TOKEN has characters that no token has");
  }
  EXPECT_EQ(ClientOf("http://127.0.0.1:1//").endpoint().text, "http://127.0.0.1:1");
}

}  // namespace
}  // namespace cria::hub
