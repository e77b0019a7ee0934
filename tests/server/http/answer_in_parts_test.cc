#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "server/http/http_fixture.h"

namespace cria::server {
namespace {

using support::RawClient;
using support::RawResponse;

class AnswerInParts : public HttpTest {
 protected:
  AnswerInParts() { StartServer(); }
};

TEST_F(AnswerInParts, PartsArriveAsTheyAreWritten) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/event-stream");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), testing::HasSubstr("200 OK"));
  for (const std::string part : {"data: one\n\n", "data: two\n\n"}) {
    EXPECT_TRUE(exchange.answer->Write(part));
    // The client gets it before there is more.
    EXPECT_THAT(client.ReadUntil("\n\n"), testing::HasSubstr(part));
  }
  exchange.answer->End();
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "\r\n0\r\n\r\n");
  EXPECT_EQ(client.Ask(Get("/next")).body, "GET /next  : ");
}

TEST_F(AnswerInParts, LargePartsPassThroughTheBuffer) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  std::string sent;
  for (int i = 0; i < 200'000; ++i) sent += std::to_string(i) + ' ';
  std::thread writer([&] {
    exchange.answer->Begin(200, "text/plain");
    EXPECT_TRUE(exchange.answer->Write(sent));
    exchange.answer->End();
  });
  const RawResponse response = client.Read();
  writer.join();
  EXPECT_TRUE(response.is_whole);
  EXPECT_EQ(response.body, sent);
}

TEST_F(AnswerInParts, OldClientsGetItUntilTheConnectionEnds) {
  RawClient client = Connect();
  client.Send("GET /wait HTTP/1.0\r\nHost: localhost\r\n\r\n");
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  EXPECT_TRUE(exchange.answer->Write("one "));
  EXPECT_TRUE(exchange.answer->Write("two"));
  exchange.answer->End();
  const RawResponse response = client.Read();
  EXPECT_EQ(response.header("Transfer-Encoding"), "");
  EXPECT_EQ(response.body, "one two");
}

TEST_F(AnswerInParts, HeadGetsNoneOfThem) {
  RawClient client = Connect();
  client.Send("HEAD /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  EXPECT_EQ(client.Read(/*has_body=*/false).status, 200);
  // It may stop.
  EXPECT_TRUE(IsGone(*exchange.answer));
  EXPECT_EQ(client.Ask(Get("/next")).body, "GET /next  : ");
}

// The server learns at the same time that there is another part and that the client has reset the
// connection.
TEST_F(AnswerInParts, TheConnectionOfAClientThatLeavesIsClosedWithoutAnotherRequest) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/event-stream");
  exchange.answer->Write("data: one\n\n");
  client.ReadUntil("\r\n\r\n");
  ASSERT_TRUE(
      WaitFor([](const HttpServer::Figures& figures) { return figures.num_requests == 1; }));
  {
    RawClient other = Connect();
    const std::lock_guard lock(blocker_);
    other.Send(Get("/block"));
    blocks_.wait(false);
    exchange.answer->Write("data: two\n\n");
    // What came and was not read makes this a reset.
    client.Close();
  }
  EXPECT_TRUE(
      WaitFor([](const HttpServer::Figures& figures) { return figures.num_connections == 0; }));
}

TEST_F(AnswerInParts, AnEmptyOneIsWhole) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  exchange.answer->Write("");
  exchange.answer->End();
  const RawResponse response = client.Read();
  EXPECT_TRUE(response.is_whole);
  EXPECT_EQ(response.body, "");
}

TEST_F(AnswerInParts, OneThatIsDroppedEndsTheConnection) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  exchange.answer->Write("half");
  exchange.answer.reset();
  const RawResponse response = client.Read();
  EXPECT_FALSE(response.is_whole);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(AnswerInParts, AClientThatClosesBeforeTheAnswerIsNoticed) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  EXPECT_FALSE(exchange.answer->gone());
  client.Close();
  EXPECT_TRUE(IsGone(*exchange.answer));
  EXPECT_TRUE(server_->WaitUntilIdle(kPatience));
  // Harmless, but of no use.
  exchange.answer->Send(200, "text/plain", "late");
}

TEST_F(AnswerInParts, AClientThatClosesBetweenPartsIsNoticed) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  exchange.answer->Write("one");
  client.ReadUntil("one");
  client.Close();
  // Nothing is written.
  EXPECT_TRUE(IsGone(*exchange.answer));
  EXPECT_FALSE(exchange.answer->Write("two"));
}

TEST_F(AnswerInParts, AClientThatIsResetIsNoticed) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  client.Reset();
  EXPECT_TRUE(IsGone(*exchange.answer));
}

TEST_F(AnswerInParts, AClientThatClosesWithAnotherRequestUnreadIsNoticed) {
  RawClient client = Connect();
  client.Send(Get("/wait") + Get("/next"));
  const Exchange exchange = Next();
  client.Close();
  EXPECT_TRUE(IsGone(*exchange.answer));
}

TEST_F(AnswerInParts, AClientThatOnlyStopsSendingGetsAnswersThatComeAtOnce) {
  RawClient client = Connect();
  client.Send(Get("/echo"));
  client.ShutDownSending();
  EXPECT_EQ(client.Read().body, "GET /echo  : ");
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(AnswerInParts, AllThatItSentBeforeIsAnswered) {
  RawClient client = Connect();
  client.Send(Get("/1") + Post("/2", std::string(100'000, 'x')) + Get("/3"));
  client.ShutDownSending();
  EXPECT_EQ(client.Read().body, "GET /1  : ");
  EXPECT_EQ(client.Read().body.size(), 100'000 + std::string("POST /2  : ").size());
  EXPECT_EQ(client.Read().body, "GET /3  : ");
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(AnswerInParts, AClientThatDoesNotReadIsNoticedWhenItCloses) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  bool is_taken = true;
  // In a thread, because it blocks when all buffers are full, for longer than the test.
  std::thread writer([&] {
    const std::string part(10'000, 'x');
    while (exchange.answer->Write(part)) {
    }
    is_taken = false;
  });
  client.ReadUntil("xxxx");
  client.Close();
  writer.join();
  EXPECT_FALSE(is_taken);
  EXPECT_TRUE(exchange.answer->gone());
}

TEST_F(AnswerInParts, ItMayOutliveTheServer) {
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  server_.reset();
  EXPECT_TRUE(exchange.answer->gone());
  EXPECT_FALSE(exchange.answer->Write("late"));
  exchange.answer->End();
}

}  // namespace
}  // namespace cria::server
