#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/body_reservation.h"
#include "server/http/http_exchange.h"
#include "server/http/wake_list.h"

namespace cria::server {

class HttpConnection;

// The answer to a request, between the handler, which writes it in any thread, and the connection,
// which reads it on the HTTP thread. Of an answer in parts, it holds as much as its buffer has.
class PendingAnswer : public std::enable_shared_from_this<PendingAnswer> {
 public:
  enum class Stage {
    kNothing,  // The handler has not answered yet.
    kWhole,
    kParts,
    kLost,  // The client has gone away, or the handler has dropped a part of the answer.
  };
  struct Head {
    int status = 0;
    std::string content_type;
    std::vector<HttpAnswer::Header> headers;
  };

  PendingAnswer(std::shared_ptr<WakeList> wake_list, size_t buffer_bytes,
                std::chrono::milliseconds timeout);

  // What the handler holds. Only one may be made. It has `reservation` until the answer is complete
  // or given up: until then, the handler may have the body of the request, even if the client has
  // gone away.
  std::shared_ptr<HttpAnswer> ForHandler(
      std::shared_ptr<const BodyReservation> reservation = nullptr);

  // The functions below are for the HTTP thread.

  // If there is nothing yet, the connection is in the wake list as soon as there is.
  Stage WaitForHead();
  const Head& head() const { return head_; }
  std::string TakeBody() { return std::move(body_); }

  struct Part {
    size_t num_bytes = 0;
    bool is_last = false;  // The answer has ended, or is lost.
    bool is_lost = false;
  };
  // Moves what there is of the answer's content. If there is nothing yet, the connection is in the
  // wake list as soon as there is.
  Part Read(std::span<char> destination);

  // The client gets no more of it.
  void Abandon();

  // Null once the request has ended.
  HttpConnection* connection = nullptr;

 private:
  class Handle;

  void SendWhole(Head head, std::string body);
  void Begin(Head head);
  bool Write(std::string_view bytes);
  void End();
  // The handler will write no more.
  void Drop();
  // Both need the lock.
  void WakeReader();
  void Append(std::string_view bytes);

  const std::shared_ptr<WakeList> wake_list_;
  const size_t buffer_bytes_;
  const std::chrono::milliseconds timeout_;
  std::atomic<bool> gone_ = false;

  std::mutex mutex_;
  std::condition_variable has_space_;
  Stage stage_ = Stage::kNothing;
  Head head_;
  std::string body_;
  // A ring: `size_` bytes from `begin_` on.
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t size_ = 0;
  bool has_ended_ = false;
  bool reader_waits_ = false;
};

}  // namespace cria::server
