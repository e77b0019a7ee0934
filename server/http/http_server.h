#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cria/error.h"
#include "server/http/access.h"
#include "server/http/http_bounds.h"
#include "server/http/http_exchange.h"
#include "server/http/lingering_sockets.h"
#include "server/http/listener.h"

struct MHD_Daemon;

namespace cria::server {

class HttpConnection;
class PendingAnswer;
class WakeList;
struct HttpContext;

struct HttpOptions {
  HttpBounds bounds;
  AccessOptions access;
};

// Serves HTTP in one thread. libmicrohttpd reads requests and sends answers; this class accepts
// connections, watches their time and whether clients are still there, and takes the answers of
// other threads.
class HttpServer {
 public:
  // Fails if other machines can reach a listener and there is no key, unless `is_insecure`.
  static Result<std::unique_ptr<HttpServer>> Create(HttpOptions options,
                                                    std::vector<Listener> listeners,
                                                    HttpHandler handler, bool is_insecure = false);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Ends all answers and closes all connections.
  ~HttpServer();

  // Starts the thread.
  void Start();
  const std::vector<Listener>& listeners() const { return listeners_; }

  // Accepts no more connections, and refuses requests that come on those that there are.
  void StopAccepting();
  // Waits until all requests are answered. Returns false after `patience`.
  bool WaitUntilIdle(std::chrono::milliseconds patience);
  // Tells all handlers that their clients are gone.
  void AbandonAnswers();

  struct Figures {
    size_t num_connections = 0;
    size_t num_requests = 0;  // Requests that are not yet answered.
    uint64_t body_bytes = 0;  // Their bodies together.
  };
  Figures figures() const;

  // For programs without the thread: takes a connection that was accepted elsewhere, and does what
  // there is to do, for which it waits at most so long.
  void AddConnection(Descriptor socket);
  void RunOnce(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  struct Callbacks;

  HttpServer(HttpOptions options, std::vector<Listener> listeners, HttpHandler handler);
  Status Open();
  void Run();
  void HandleEvent(uint64_t tag);
  void HandleWakes();
  void HandleRequests();
  void HandleDeadlines();
  void Accept(const Listener& listener);
  // Makes place for a connection; false if there is none now.
  bool MakePlace(bool& is_hopeless);
  void WatchListeners(bool is_watched);
  Clock::time_point NextDeadline() const;
  void NoteOpened(HttpConnection& connection);
  void NoteClosed(HttpConnection& connection);
  void PublishFigures();

  std::vector<Listener> listeners_;
  const std::unique_ptr<HttpContext> context_;
  Descriptor epoll_;
  MHD_Daemon* daemon_ = nullptr;
  // By the tags of their events, which are never used twice.
  std::unordered_map<uint64_t, std::unique_ptr<HttpConnection>> connections_;
  uint64_t next_tag_;
  LingeringSockets lingering_;
  // When accepting goes on, after there were too few descriptors.
  Clock::time_point accepts_again_ = Clock::time_point::max();
  std::vector<std::shared_ptr<PendingAnswer>> woken_;

  // What other threads ask for.
  std::atomic<bool> stops_accepting_ = false;
  std::atomic<bool> abandons_ = false;
  std::atomic<bool> ends_ = false;

  mutable std::mutex figures_mutex_;
  std::condition_variable figures_changed_;
  Figures figures_;
  std::thread thread_;
};

}  // namespace cria::server
