#pragma once

#include <microhttpd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/access.h"
#include "server/http/http_bounds.h"
#include "server/http/http_exchange.h"
#include "server/http/pending_answer.h"

namespace cria::server {

// What all connections of a server share. Only the HTTP thread changes it.
struct HttpContext {
  HttpBounds bounds;
  Access access;
  HttpHandler handler;
  std::shared_ptr<WakeList> wake_list;
  // The bytes of all requests that are not yet answered, or that their handler still has.
  std::shared_ptr<std::atomic<uint64_t>> body_bytes = std::make_shared<std::atomic<uint64_t>>(0);
  // Requests that are not yet answered. Each is counted before its handler is called, so that other
  // threads that know of the request find it counted.
  std::atomic<size_t> num_requests = 0;
  bool is_closing = false;  // New requests are refused.
};

// A client's connection, and the request that it is at. All functions are called on the HTTP
// thread, most of them by libmicrohttpd.
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Phase {
    kHead,      // The first request has not come whole.
    kBody,      // The request's head has come, its body has not.
    kHandling,  // The handler has the request; nothing of the answer was sent.
    kAnswering,
    kIdle,     // It is kept for another request.
    kClosing,  // The socket is shut down.
  };

  HttpConnection(HttpContext& context, MHD_Connection* connection, int socket);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // The first line of a request has come. `target` is as it was sent.
  void StartRequest(std::string_view target);
  // The head of the request has come, or a part of its body, or the end of the body, or the
  // connection was resumed.
  MHD_Result Continue(std::string_view method, std::string_view upload, size_t* upload_size);
  // More of an answer in parts is wanted, or of a whole one.
  ssize_t ReadAnswer(char* destination, size_t max_bytes);
  ssize_t ReadBody(uint64_t offset, char* destination, size_t max_bytes);
  void FinishRequest();

  // The client has closed its end.
  void NotePeerClosed();
  // Called after the library has read what there is.
  void CloseIfPeerIsDone();
  // The answer has something that was waited for, or is lost.
  void Wake();
  // Ends what the client still expects.
  void Abandon();
  // The deadline has passed.
  void Expire();
  void ShutDown();

  Phase phase() const { return phase_; }
  int socket() const { return socket_; }
  Clock::time_point deadline() const { return deadline_; }
  Clock::time_point began() const { return began_; }
  // The client was refused while it may still send.
  bool lingers() const { return lingers_; }

 private:
  struct Head;
  static MHD_Result CollectHeader(void* head, MHD_ValueKind kind, const char* key, size_t key_size,
                                  const char* value, size_t value_size);

  MHD_Result BeginRequest(std::string_view method);
  std::optional<Refusal> CheckHead(std::string_view method, Head& head);
  std::optional<Refusal> ReadTarget();
  std::optional<Refusal> ReserveBody(uint64_t bytes);
  MHD_Result TakeBody(std::string_view upload);
  MHD_Result Dispatch();
  MHD_Result Answer();
  MHD_Result QueueWhole();
  MHD_Result Refuse(const Refusal& refusal);
  MHD_Result AnswerOptions();
  MHD_Result Queue(int status, std::string_view content_type, MHD_Response* response);
  // Writes to the socket directly, and lets the connection be closed.
  void RefuseAndClose(const Refusal& refusal);
  void SetDeadline(std::chrono::milliseconds from_now) { deadline_ = Clock::now() + from_now; }
  void Suspend();

  HttpContext& context_;
  MHD_Connection* const connection_;
  const int socket_;
  const std::string local_address_;
  const Clock::time_point began_ = Clock::now();
  Phase phase_ = Phase::kHead;
  Clock::time_point deadline_;
  bool is_suspended_ = false;
  bool peer_has_closed_ = false;
  bool lingers_ = false;

  // What is known of the request:
  bool is_counted_ = false;
  std::optional<Refusal> refusal_;  // Once its head is known.
  bool is_preflight_ = false;
  bool is_in_parts_ = false;  // Its answer is being sent in parts.
  std::shared_ptr<BodyReservation> reservation_;
  std::string target_;
  std::string allowed_origin_;  // To which the answer is allowed; empty: no other site's.
  HttpRequest request_;
  std::shared_ptr<PendingAnswer> answer_;
  std::string body_;  // A whole answer's.
};

}  // namespace cria::server
