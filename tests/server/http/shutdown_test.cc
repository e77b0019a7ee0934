#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "server/http/http_fixture.h"

namespace cria::server {
namespace {

using namespace std::chrono_literals;
using support::RawClient;
using support::RawResponse;

class Shutdown : public HttpTest {
 protected:
  Shutdown() { StartServer(); }
};

TEST_F(Shutdown, AnswersUnderWayEnd) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  server_->StopAccepting();
  EXPECT_FALSE(server_->WaitUntilIdle(10ms));
  exchange.answer->Begin(200, "text/plain");
  exchange.answer->Write("to the end");
  exchange.answer->End();
  const RawResponse response = client.Read();
  EXPECT_TRUE(response.is_whole);
  EXPECT_EQ(response.body, "to the end");
  EXPECT_EQ(response.header("Connection"), "close");
  EXPECT_TRUE(server_->WaitUntilIdle(kPatience));
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(Shutdown, NothingNewIsAccepted) {
  RawClient idle = Connect();
  EXPECT_EQ(idle.Ask(Get("/x")).status, 200);
  RawClient half = Connect();
  half.Send("GET /x HTTP/1.1\r\nHost: loc");
  ASSERT_TRUE(
      WaitFor([](const HttpServer::Figures& figures) { return figures.num_connections == 2; }));
  server_->StopAccepting();
  EXPECT_TRUE(idle.IsClosed());
  const RawResponse refused = half.Ask("alhost\r\n\r\n");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, testing::HasSubstr("shutting_down"));
  EXPECT_THROW(Connect(), std::runtime_error);
}

TEST_F(Shutdown, AbandonedAnswersAreCut) {
  RawClient waiting = Connect();
  waiting.Send(Get("/wait/1"));
  const Exchange first = Next();
  RawClient streaming = Connect();
  streaming.Send(Get("/wait/2"));
  const Exchange second = Next();
  second.answer->Begin(200, "text/plain");
  second.answer->Write("half");
  streaming.ReadUntil("half");
  server_->AbandonAnswers();
  EXPECT_TRUE(IsGone(*first.answer));
  EXPECT_TRUE(IsGone(*second.answer));
  EXPECT_TRUE(waiting.IsClosed());
  EXPECT_TRUE(streaming.IsClosed());
  EXPECT_TRUE(server_->WaitUntilIdle(kPatience));
}

TEST_F(Shutdown, DestroyingEndsEverything) {
  RawClient waiting = Connect();
  waiting.Send(Get("/wait"));
  const Exchange exchange = Next();
  RawClient half = Connect();
  half.Send("GET /");
  server_.reset();
  EXPECT_TRUE(exchange.answer->gone());
  EXPECT_TRUE(waiting.IsClosed());
  EXPECT_TRUE(half.IsClosed());
}

}  // namespace
}  // namespace cria::server
