#include "server/http/access.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cria::server {
namespace {

RequestHead HeadFor(std::string_view host) {
  return {.method = "POST", .path = "/v1/models", .num_hosts = 1, .host = host};
}

// 0: the request is allowed.
int StatusOf(const Access& access, const RequestHead& head) {
  const std::optional<Refusal> refusal = access.Check(head);
  return refusal ? refusal->status : 0;
}

TEST(Access, AnswersToItsOwnNamesAlone) {
  const Access access({.allowed_hosts = {"board.local", "[2001:DB8::1]", "fd00::1"}});
  for (const char* const host :
       {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "[::1]:8080", "board.local",
        "Board.Local:8080", "board.local.", "[2001:db8::1]", "[fd00::1]:80"}) {
    EXPECT_EQ(StatusOf(access, HeadFor(host)), 0) << host;
  }
  for (const char* const host : {"evil.example", "localhost.evil.example", "evil.example:8080",
                                 "xboard.local", "127.0.0.2", "192.168.1.5", "[::2]"}) {
    EXPECT_EQ(StatusOf(access, HeadFor(host)), 403) << host;
  }
}

TEST(Access, AnswersToTheAddressThatWasReached) {
  const Access access({});
  RequestHead head = HeadFor("192.168.1.5:8080");
  EXPECT_EQ(StatusOf(access, head), 403);
  head.local_address = "192.168.1.5";
  EXPECT_EQ(StatusOf(access, head), 0);
  // A Unix socket has no address.
  RequestHead empty = HeadFor("");
  EXPECT_EQ(StatusOf(access, empty), 400);
}

TEST(Access, NeedsOneHost) {
  const Access access({});
  RequestHead head = HeadFor("localhost");
  head.num_hosts = 0;
  EXPECT_EQ(StatusOf(access, head), 400);
  head.num_hosts = 2;
  EXPECT_EQ(StatusOf(access, head), 400);
  EXPECT_EQ(StatusOf(access, HeadFor("local host")), 400);
}

TEST(Access, PagesOfOtherSitesAreRefused) {
  const Access access({.allowed_origins = {"https://chat.example"}});
  RequestHead head = HeadFor("localhost:8080");
  const auto status = [&](std::string_view origin) {
    head.origin = origin;
    return StatusOf(access, head);
  };
  EXPECT_EQ(status("http://localhost:8080"), 0);
  EXPECT_EQ(status("http://LOCALHOST:8080"), 0);
  EXPECT_EQ(status("https://chat.example"), 0);
  for (const char* const origin :
       {"http://localhost:9000", "http://localhost", "http://chat.example", "https://evil.example",
        "https://chat.example.evil", "null", "", "http://localhost:8080/", "file://"}) {
    EXPECT_EQ(status(origin), 403) << origin;
  }
  // No browser sends two.
  head.num_origins = 2;
  EXPECT_EQ(status("https://chat.example"), 403);
  EXPECT_TRUE(access.AllowsOrigin("https://chat.example"));
  // Its own pages need no header that allows them.
  EXPECT_FALSE(access.AllowsOrigin("http://localhost:8080"));
}

TEST(Access, NeedsAKeyExceptForOpenPaths) {
  const Access access({.keys = ApiKeys({"secret", "other"}), .open_paths = {"/health", "/"}});
  RequestHead head = HeadFor("localhost");
  EXPECT_EQ(StatusOf(access, head), 401);
  for (const char* const header : {"Bearer secret", "bearer  other", "BEARER secret "}) {
    head.authorization = header;
    EXPECT_EQ(StatusOf(access, head), 0) << header;
  }
  for (const char* const header : {"", "Bearer", "Bearer ", "Bearer wrong", "secret",
                                   "Basic secret", "Bearer secret other", "Bearersecret"}) {
    head.authorization = header;
    EXPECT_EQ(StatusOf(access, head), 401) << header;
  }
  head.authorization.reset();
  head.api_key = "other";
  EXPECT_EQ(StatusOf(access, head), 0);
  head.api_key = "";
  EXPECT_EQ(StatusOf(access, head), 401);
  head.api_key.reset();
  for (const char* const path : {"/health", "/"}) {
    head.path = path;
    EXPECT_EQ(StatusOf(access, head), 0) << path;
  }
  for (const char* const path : {"/health/", "/healthy", "//health", "/x/../health", ""}) {
    head.path = path;
    EXPECT_EQ(StatusOf(access, head), 401) << path;
  }
}

TEST(Access, APreflightNeedsNoKeyButAnAllowedOrigin) {
  const Access access({.allowed_origins = {"https://chat.example"}, .keys = ApiKeys({"secret"})});
  RequestHead head = HeadFor("localhost");
  head.is_preflight = true;
  head.origin = "https://chat.example";
  EXPECT_EQ(StatusOf(access, head), 0);
  head.origin = "https://evil.example";
  EXPECT_EQ(StatusOf(access, head), 403);
}

TEST(Refusal, IsAnErrorOfTheApi) {
  EXPECT_EQ(RefusalBody({.status = 401, .code = "invalid_api_key", .sentence = "no key"}),
            R"({"error":{"message":"no key","type":"authentication_error","param":null,)"
            R"("code":"invalid_api_key"}})");
  const std::string response =
      RefusalResponse({.status = 413, .code = "body_too_large", .sentence = "too long"});
  EXPECT_TRUE(response.starts_with("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n"));
  EXPECT_TRUE(response.ends_with(R"("code":"body_too_large"}})"));
}

}  // namespace
}  // namespace cria::server
