#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/http/http_fixture.h"

namespace cria::server {
namespace {

using support::RawClient;
using support::RawResponse;

class ConnectionLimit : public HttpTest {
 protected:
  ConnectionLimit() {
    HttpOptions options;
    options.bounds.max_connections = 3;
    StartServer(std::move(options));
  }
};

TEST_F(ConnectionLimit, MoreAreRefusedWhileAllAreBusy) {
  std::vector<RawClient> clients;
  std::vector<Exchange> exchanges;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect());
    clients.back().Send(Get("/wait"));
    exchanges.push_back(Next());
  }
  const RawResponse refused = Connect().Ask(Get("/x"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(refused.header("Connection"), "close");
  exchanges[0].answer->Send(200, "text/plain", "done");
  EXPECT_EQ(clients[0].Read().body, "done");
  // The first connection is idle now and gives its place away.
  EXPECT_EQ(Connect().Ask(Get("/x")).status, 200);
  EXPECT_TRUE(clients[0].IsClosed());
  EXPECT_LE(server_->figures().num_connections, 3u);
}

TEST_F(ConnectionLimit, TheOneThatIsIdleForLongestGivesItsPlaceAway) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect());
    EXPECT_EQ(clients.back().Ask(Get("/x")).status, 200);
  }
  EXPECT_EQ(clients[0].Ask(Get("/again")).status, 200);
  EXPECT_EQ(Connect().Ask(Get("/x")).status, 200);
  EXPECT_TRUE(clients[1].IsClosed());
  EXPECT_EQ(clients[0].Ask(Get("/still")).status, 200);
  EXPECT_EQ(clients[2].Ask(Get("/still")).status, 200);
}

TEST_F(ConnectionLimit, ManyOneAfterTheOther) {
  for (int i = 0; i < 200; ++i) ASSERT_EQ(Connect().Ask(Get("/x")).status, 200) << i;
}

TEST_F(ConnectionLimit, SilentOnesDoNotKeepOthersOutForLong) {
  std::vector<RawClient> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(Connect());
  // Refused until the others have been silent for two seconds.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  while (status != 200 && std::chrono::steady_clock::now() < deadline) {
    status = Connect().Ask(Get("/x")).status;
  }
  EXPECT_EQ(status, 200);
}

}  // namespace
}  // namespace cria::server
