#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cria::server {

struct HttpRequest {
  std::string method;  // "GET", "POST", …; HEAD arrives as GET, and its content is not sent.
  std::string path;    // Decoded, without the query; always begins with '/'.
  std::string query;   // As it was sent, without '?'.
  std::string body;    // Whole; bounded by HttpBounds::max_body_bytes.
  std::string content_type;
};

// The answer to one request. It may be used from any thread, by one at a time, and may outlive the
// connection and the server. If it is destroyed before it is sent whole, the client gets an error
// or sees that the answer ends early.
class HttpAnswer {
 public:
  struct Header {
    std::string name;
    std::string value;
  };

  virtual ~HttpAnswer() = default;

  // A whole answer.
  virtual void Send(int status, std::string_view content_type, std::string body,
                    std::span<const Header> headers = {}) = 0;

  // An answer in parts: Begin, any number of calls of Write, End. Write blocks while the buffer of
  // the connection is full, so it must not be called on the HTTP thread. It returns false when the
  // client has gone away or took too little for the time-out: then the caller should stop.
  virtual void Begin(int status, std::string_view content_type,
                     std::span<const Header> headers = {}) = 0;
  virtual bool Write(std::string_view bytes) = 0;
  virtual void End() = 0;

  // True as soon as the client has gone away, also while nothing is written. Valid as long as the
  // answer.
  virtual const std::atomic<bool>& gone() const = 0;
};

// Called on the HTTP thread with the whole request; it must return soon: parse, refuse, or pass the
// answer on to another thread.
using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpAnswer> answer)>;

}  // namespace cria::server
