#include "converter/hub/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/unwrap.h"

namespace cria::hub {
namespace {

TEST(Url, HasAnOriginWithThePort) {
  EXPECT_EQ(Unwrap(ParseUrl("https://HuggingFace.co/a?b", "it")).origin(),
            "https://huggingface.co:443");
  EXPECT_EQ(Unwrap(ParseUrl("https://hub.example:8443", "it")).origin(),
            "https://hub.example:8443");
  EXPECT_EQ(Unwrap(ParseUrl("http://127.0.0.1:9/x", "it")).origin(), "http://127.0.0.1:9");
  EXPECT_EQ(Unwrap(ParseUrl("http://[::1]:9", "it")).origin(), "http://[::1]:9");
}

TEST(Url, OnlyThisMachineMayBeWithoutTls) {
  for (const char* url : {"http://127.0.0.1", "http://localhost:1", "http://[::1]/a"}) {
    EXPECT_TRUE(ParseUrl(url, "it")) << url;
  }
  for (const char* url : {"http://hub.example", "http://127.0.0.1.hub.example", "http://127.0.0.2",
                          "http://localhost.hub.example", "http://10.0.0.1", "ftp://127.0.0.1",
                          "file:///etc/passwd", "https://user:secret@hub.example",
                          "http://user@127.0.0.1", "hub.example", "", "https://"}) {
    EXPECT_FALSE(ParseUrl(url, "it")) << url;
  }
}

TEST(Url, PercentEncodesEverythingThatIsReserved) {
  EXPECT_EQ(PercentEncode("refs/pr/1", false), "refs%2Fpr%2F1");
  EXPECT_EQ(PercentEncode("a b/c?#%ä.gguf", true), "a%20b/c%3F%23%25%C3%A4.gguf");
}

}  // namespace
}  // namespace cria::hub
