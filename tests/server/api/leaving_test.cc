// Clients that leave their answers, wait for them or are refused, and the end of the server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

using LeavingTest = ApiTest;

TEST_F(LeavingTest, AClientThatLeavesStopsItsAnswer) {
  auto answer = std::make_shared<RecordedAnswer>();
  std::atomic<int> writes = 0;
  answer->on_write = [&](RecordedAnswer& self) {
    if (++writes == 3) self.Leave();
  };
  Json request = Chat("Who?", 1500);
  request["stream"] = true;
  request["ignore_eos"] = true;
  api_.Handle({.method = "POST", .path = "/v1/chat/completions", .body = Written(request)}, answer);
  // Its thread becomes free: both of them can answer.
  const auto one = Begin("POST", "/v1/chat/completions", Written(Chat()));
  const auto two = Begin("POST", "/v1/chat/completions", Written(Chat()));
  one->AwaitEnd();
  two->AwaitEnd();
  work_.Close(std::chrono::hours(1));
  EXPECT_LE(writes, 4);
}

TEST_F(LeavingTest, ClosingEndsAnswersAndRefusesOthers) {
  const auto answer = BeginLongAnswer();
  work_.Close(std::chrono::milliseconds(0));
  EXPECT_TRUE(answer->is_over());
  EXPECT_THAT(answer->body, HasSubstr("shutting down"));
  EXPECT_EQ(Post("/v1/chat/completions", Chat())->status, 429);
}

class BusyApiTest : public ApiTest {
 protected:
  BusyApiTest() : ApiTest(1, 1) {}
};

TEST_F(BusyApiTest, AFullQueueIsTold) {
  const auto answer = BeginLongAnswer();
  const auto waiting = Begin("POST", "/v1/chat/completions", Written(Chat()));
  const auto refused = Post("/v1/chat/completions", Chat());
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->json()["error"]["type"], "rate_limit_error");
  ASSERT_EQ(refused->headers.size(), 1u);
  EXPECT_EQ(refused->headers[0].name, "Retry-After");
  // One that leaves while it waits makes room.
  waiting->Leave();
  const auto next = Begin("POST", "/v1/chat/completions", Written(Chat()));
  answer->Leave();
  next->AwaitEnd();
  EXPECT_EQ(next->status, 200);
}

}  // namespace
}  // namespace cria::server
