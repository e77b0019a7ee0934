#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_server.h"
#include "server/http/raw_client.h"
#include "support/unwrap.h"

namespace cria::server {

// No test waits so long.
inline constexpr auto kPatience = std::chrono::seconds(60);

// A server whose handler keeps what it gets, until the test answers, or answers at once.
class HttpTest : public testing::Test {
 protected:
  struct Exchange {
    HttpRequest request;
    std::shared_ptr<HttpAnswer> answer;
  };

  // Answers "METHOD PATH QUERY TYPE: BODY" at once, but for paths that begin with /wait, which
  // Next returns. A request to /block sets blocks_ and lets the server wait for blocker_.
  void StartServer(HttpOptions options = {}) {
    std::vector<Listener> listeners = Unwrap(ListenAtHost("127.0.0.1", 0));
    const std::string& place = listeners.front().place;
    port_ = std::stoi(place.substr(place.rfind(':') + 1));
    server_ =
        Unwrap(HttpServer::Create(std::move(options), std::move(listeners),
                                  [this](HttpRequest request, std::shared_ptr<HttpAnswer> answer) {
                                    Handle(std::move(request), std::move(answer));
                                  }));
    server_->Start();
  }

  // The next request to a path that begins with /wait.
  Exchange Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return !exchanges_.empty(); })) {
      ADD_FAILURE() << "no request comes";
      return {};
    }
    Exchange exchange = std::move(exchanges_.front());
    exchanges_.pop_front();
    return exchange;
  }

  support::RawClient Connect() const { return support::RawClient::ToPort(port_); }

  static std::string Get(const std::string& path, const std::string& more_headers = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more_headers + "\r\n";
  }
  static std::string Post(const std::string& path, const std::string& body,
                          const std::string& more_headers = "") {
    return "POST " + path +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n" + more_headers + "\r\n" + body;
  }

  // Waits until the figures satisfy `is_reached`; the server publishes them after each turn.
  template <typename Condition>
  bool WaitFor(Condition is_reached) const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!is_reached(server_->figures())) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  // Declared before the server, which ends first.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Exchange> exchanges_;
  std::mutex blocker_;
  std::atomic<bool> blocks_ = false;
  std::unique_ptr<HttpServer> server_;
  int port_ = 0;

 private:
  void Handle(HttpRequest request, std::shared_ptr<HttpAnswer> answer) {
    if (request.path.starts_with("/wait")) {
      const std::lock_guard lock(mutex_);
      exchanges_.push_back({std::move(request), std::move(answer)});
      changed_.notify_all();
    } else if (request.path == "/block") {
      blocks_ = true;
      blocks_.notify_all();
      const std::lock_guard lock(blocker_);
    } else if (request.path == "/drop") {
      answer.reset();
    } else if (request.path == "/no-delete" && request.method != "GET") {
      const HttpAnswer::Header allow = {"Allow", "GET, HEAD"};
      answer->Send(405, "application/json", "{}", {&allow, 1});
    } else {
      answer->Send(200, "text/plain",
                   request.method + ' ' + request.path + ' ' + request.query + ' ' +
                       request.content_type + ": " + request.body);
    }
  }
};

// Waits until the answer's client is gone.
inline bool IsGone(const HttpAnswer& answer) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!answer.gone()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace cria::server
