// What is not HTTP, or more than the bounds allow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/http/http_fixture.h"

namespace cria::server {
namespace {

using support::RawClient;
using support::RawResponse;
using testing::AnyOf;
using testing::HasSubstr;

class BadRequests : public HttpTest {
 protected:
  // The status of the answer to bytes on a connection of their own; 0 if it ends without one.
  int StatusOf(const std::string& bytes) const {
    RawClient client = Connect();
    client.Send(bytes);
    client.ShutDownSending();
    return client.Read().status;
  }

  // The server still serves others, and forgets who is gone.
  void ExpectHealthy() const {
    EXPECT_EQ(Connect().Ask(Get("/health")).status, 200);
    EXPECT_TRUE(WaitFor([](const HttpServer::Figures& figures) {
      return figures.num_connections == 0 && figures.body_bytes == 0;
    }));
  }
};

TEST_F(BadRequests, MalformedOnesAreRefused) {
  StartServer();
  const std::string host = "Host: localhost\r\n";
  for (const std::string& bytes : {
           std::string("\r\n\r\n\r\n\r\n"),
           std::string("GET\r\n\r\n"),
           std::string("GET / \r\n\r\n"),
           std::string("GET /\r\n\r\n"),
           std::string("GET / HTTP/9.9\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\n\r\n"),
           "GET / HTTP/1.1\r\n" + host + host + "\r\n",
           std::string("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"),
           "GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n",
           "GET / HTTP/1.1\r\n" + host + ": no name\r\n\r\n",
           "GET / HTTP/1.1\r\n" + host + "X: a\r\n folded: b\r\n\r\n",
           "GET http://localhost/ HTTP/1.1\r\n" + host + "\r\n",
           "GET relative HTTP/1.1\r\n" + host + "\r\n",
           "GET /%zz HTTP/1.1\r\n" + host + "\r\n",
           "GET /% HTTP/1.1\r\n" + host + "\r\n",
           "POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\n" + host + "Content-Length: 1x\r\n\r\nab",
           "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
           "POST / HTTP/1.1\r\n" + host +
               "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
               "0\r\n\r\n",
           "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n\r\nab\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\n" + host +
               "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab\r\n0\r\n\r\n",
           std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
           std::string(100, '\0'),
           std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
       }) {
    EXPECT_THAT(StatusOf(bytes), testing::Ne(200)) << bytes;
  }
  ExpectHealthy();
}

TEST_F(BadRequests, HalfOnesEndWithTheirConnection) {
  StartServer();
  const std::string whole = Post("/echo", "body", "Content-Type: text/plain\r\n");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(StatusOf(whole.substr(0, size)), 0) << size;
  }
  EXPECT_EQ(StatusOf(whole), 200);
  ExpectHealthy();
}

TEST_F(BadRequests, ResetConnectionsAreForgotten) {
  StartServer();
  for (const std::string& bytes :
       {std::string(), std::string("GET /"), Post("/echo", "body"), Get("/wait"),
        Post("/wait", std::string(100, 'x')).substr(0, 80)}) {
    RawClient client = Connect();
    client.Send(bytes);
    client.Reset();
  }
  ExpectHealthy();
}

TEST_F(BadRequests, LongHeadsAreRefused) {
  StartServer();
  EXPECT_EQ(StatusOf(Get("/" + std::string(100'000, 'x'))), 414);
  EXPECT_EQ(StatusOf(Get("/", "X: " + std::string(100'000, 'x') + "\r\n")), 431);
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "X" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(StatusOf(Get("/", many)), 431);
  // A line that never ends.
  EXPECT_THAT(StatusOf("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100'000, 'x')),
              431);
  ExpectHealthy();
}

TEST_F(BadRequests, ALongBodyIsRefusedBeforeItIsRead) {
  HttpOptions options;
  options.bounds.max_body_bytes = 1000;
  StartServer(std::move(options));
  RawClient client = Connect();
  // Nothing of the body is sent.
  const RawResponse response =
      client.Ask("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_EQ(response.status, 413);
  EXPECT_THAT(response.body, HasSubstr("body_too_large"));
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(StatusOf("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                     "18446744073709551615\r\n\r\n"),
            413);
  EXPECT_THAT(StatusOf("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                       "99999999999999999999999\r\n\r\n"),
              AnyOf(413, 400));
  EXPECT_EQ(StatusOf(Post("/echo", std::string(1000, 'x'))), 200);
  ExpectHealthy();
}

TEST_F(BadRequests, AClientThatSendsALongBodyReadsTheRefusal) {
  HttpOptions options;
  options.bounds.max_body_bytes = 1000;
  StartServer(std::move(options));
  // More than the sockets hold, so that it is sent while the answer is on its way.
  EXPECT_EQ(Connect().Ask(Post("/echo", std::string(8 << 20, 'x'))).status, 413);
  RawClient chunked = Connect();
  chunked.Send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  for (int i = 0; i < 4096 && chunked.Send(chunk); ++i) {
  }
  EXPECT_EQ(chunked.Read().status, 413);
  ExpectHealthy();
}

TEST_F(BadRequests, AllBodiesTogetherAreBounded) {
  HttpOptions options;
  options.bounds.max_body_bytes = 1000;
  options.bounds.total_body_bytes = 1500;
  StartServer(std::move(options));
  RawClient first = Connect();
  first.Send(Post("/wait", std::string(1000, 'x')));
  Exchange exchange = Next();
  const RawResponse refused = Connect().Ask(Post("/echo", std::string(501, 'x')));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(Connect().Ask(Post("/echo", std::string(500, 'x'))).status, 200);
  exchange.answer->Send(200, "text/plain", "done");
  EXPECT_EQ(first.Read().body, "done");
  EXPECT_EQ(Connect().Ask(Post("/echo", std::string(501, 'x'))).status, 200);
}

TEST_F(BadRequests, BothEndingsOfLinesAreNotMixedUp) {
  StartServer();
  // A line feed alone must not hide a header from a proxy that reads lines otherwise.
  const std::string request =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nX: y\nContent-Length: 5\r\n\r\nGET /";
  EXPECT_THAT(StatusOf(request), testing::Ne(200));
  ExpectHealthy();
}

}  // namespace
}  // namespace cria::server
