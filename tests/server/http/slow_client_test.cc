// Clients that send or take little, or nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "server/http/http_fixture.h"
#include "support/emulation.h"

namespace cria::server {
namespace {

using namespace std::chrono_literals;
using support::RawClient;
using support::RawResponse;
using testing::HasSubstr;

class SlowClients : public HttpTest {
 protected:
  // Long enough for a client that is not slow, on a machine that is busy.
  static inline const std::chrono::milliseconds kTimeout = support::IsEmulated() ? 4000ms : 400ms;

  static HttpOptions Impatient(std::chrono::milliseconds timeout = kTimeout) {
    HttpOptions options;
    options.bounds.request_timeout = timeout;
    options.bounds.answer_timeout = timeout;
    options.bounds.idle_timeout = timeout;
    return options;
  }

  // Sends a byte whenever the server may have taken the one before, until the server closes.
  static void Dribble(RawClient& client, std::string_view bytes) {
    std::atomic<bool> ends = false;
    std::thread sender([&] {
      for (const char byte : bytes) {
        if (ends || !client.Send({&byte, 1})) return;
        std::this_thread::sleep_for(5ms);
      }
    });
    EXPECT_TRUE(client.IsClosed());
    ends = true;
    sender.join();
  }
};

TEST_F(SlowClients, ThoseThatSendNothingAreClosed) {
  StartServer(Impatient());
  RawClient client = Connect();
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(SlowClients, ThoseWhoseHeadDribblesAreClosed) {
  StartServer(Impatient());
  RawClient client = Connect();
  Dribble(client, "GET /" + std::string(10'000, 'x'));
}

TEST_F(SlowClients, ThoseWhoseBodyDribblesAreRefused) {
  StartServer(Impatient());
  RawClient client = Connect();
  client.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\nabc");
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 408);
  EXPECT_THAT(response.body, HasSubstr("request_timeout"));
  EXPECT_TRUE(client.IsClosed());
  RawClient other = Connect();
  other.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n");
  Dribble(other, std::string(10'000, 'x'));
}

TEST_F(SlowClients, ConnectionsWithoutARequestAreClosed) {
  StartServer(Impatient());
  RawClient client = Connect();
  EXPECT_EQ(client.Ask(Get("/x")).status, 200);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(SlowClients, TheNextHeadMayNotDribbleEither) {
  StartServer(Impatient());
  RawClient client = Connect();
  EXPECT_EQ(client.Ask(Get("/x")).status, 200);
  Dribble(client, "GET /" + std::string(10'000, 'x'));
}

TEST_F(SlowClients, AnAnswerMayComeLate) {
  StartServer(Impatient());
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  // Longer than every time-out of the client's.
  EXPECT_FALSE(server_->WaitUntilIdle(2 * kTimeout));
  EXPECT_FALSE(exchange.answer->gone());
  exchange.answer->Send(200, "text/plain", "late");
  EXPECT_EQ(client.Read().body, "late");
}

TEST_F(SlowClients, OneThatTakesNothingStopsItsAnswer) {
  StartServer(Impatient());
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Begin(200, "text/plain");
  const std::string part(1000, 'x');
  size_t taken = 0;
  while (exchange.answer->Write(part)) taken += part.size();
  EXPECT_TRUE(exchange.answer->gone());
  // What the sockets' buffers hold: the server's 128 KiB, and the client's some more.
  EXPECT_LT(taken, size_t{1} << 20);
  EXPECT_TRUE(
      WaitFor([](const HttpServer::Figures& figures) { return figures.num_connections == 0; }));
}

TEST_F(SlowClients, OneThatTakesNothingOfAWholeAnswerIsClosed) {
  StartServer(Impatient());
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  // More than the sockets hold.
  exchange.answer->Send(200, "text/plain", std::string(64 << 20, 'x'));
  EXPECT_TRUE(server_->WaitUntilIdle(kPatience));
  const RawResponse response = client.Read();
  EXPECT_FALSE(response.is_whole);
  EXPECT_LT(response.body.size(), size_t{64} << 20);
}

TEST_F(SlowClients, OneThatTakesAllInTimeGetsAll) {
  StartServer(Impatient(kPatience));
  RawClient client = Connect();
  client.Send(Get("/wait"));
  const Exchange exchange = Next();
  exchange.answer->Send(200, "text/plain", std::string(16 << 20, 'x'));
  EXPECT_EQ(client.Read().body.size(), size_t{16} << 20);
}

}  // namespace
}  // namespace cria::server
