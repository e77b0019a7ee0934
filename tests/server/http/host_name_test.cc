#include "server/http/host_name.h"

#include <gtest/gtest.h>

namespace cria::server {
namespace {

TEST(HostOf, TakesThePortAway) {
  EXPECT_EQ(HostOf("localhost"), "localhost");
  EXPECT_EQ(HostOf("Board.Local:8080"), "board.local");
  EXPECT_EQ(HostOf("board.local."), "board.local");
  EXPECT_EQ(HostOf("127.0.0.1:80"), "127.0.0.1");
  EXPECT_EQ(HostOf("[::1]:8080"), "::1");
  EXPECT_EQ(HostOf("[FE80::1]"), "fe80::1");
  EXPECT_EQ(HostOf("localhost:"), "localhost");
}

TEST(HostOf, RefusesWhatIsNoHost) {
  for (const char* const text : {"",      ":",          ":80",    "[",           "[]",
                                 "[]:80", "[::1",       "[::1]x", "[::1]:x",     "::1",
                                 "a b",   "a:80:90",    "a:-1",   "user@host",   "http://host",
                                 "host/", "host,other", "h\tost", "[localhost]", "\xC3\xA4"}) {
    EXPECT_FALSE(HostOf(text)) << text;
  }
  EXPECT_FALSE(HostOf(std::string_view("localhost\0.evil", 15)));
}

TEST(AuthorityOfOrigin, IsWhatFollowsTheScheme) {
  EXPECT_EQ(AuthorityOfOrigin("http://board.local:8080"), "board.local:8080");
  EXPECT_EQ(AuthorityOfOrigin("https://[::1]"), "[::1]");
  for (const char* const origin : {"", "null", "http://", "http:", "file://", "ftp://board.local",
                                   "http://board.local/", "board.local", "http://a b"}) {
    EXPECT_FALSE(AuthorityOfOrigin(origin)) << origin;
  }
}

TEST(EqualsIgnoringCase, ComparesAscii) {
  EXPECT_TRUE(EqualsIgnoringCase("Host", "hOST"));
  EXPECT_FALSE(EqualsIgnoringCase("Host", "Hosts"));
  EXPECT_FALSE(EqualsIgnoringCase("@", "`"));
  EXPECT_TRUE(EqualsIgnoringCase("", ""));
}

}  // namespace
}  // namespace cria::server
