#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cria::support {

struct HttpRequest {
  std::string method;
  std::string target;                          // "/path?query", as it was sent.
  std::map<std::string, std::string> headers;  // Names are in lower case.

  std::string header(const std::string& name) const;
};

struct HttpResponse {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // What Content-Length says; absent: the truth.
  std::optional<uint64_t> claimed_bytes;
  // The connection is closed after so many bytes of the body.
  std::optional<size_t> breaks_after_bytes;
  // The body is sent in parts of this size; after each, `after_part` is called if it is set.
  size_t part_bytes = size_t{1} << 20;
  std::function<void()> after_part = {};
  // Sent in place of everything else.
  std::string raw;
};

// An HTTP server at 127.0.0.1 that answers each request with what a function returns, and then
// closes the connection. The function is called by several threads.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  explicit HttpServer(Handler handler);  // Throws std::runtime_error on failure.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Every request so far.
  std::vector<HttpRequest> requests() const;

 private:
  void Accept();
  void Serve(int connection);

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stops_ = false;
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::vector<std::thread> connections_;
  std::thread acceptor_;
};

// A TCP port of 127.0.0.1 on which nobody listens, as far as can be known.
int UnusedPort();

}  // namespace cria::support
