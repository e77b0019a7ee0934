#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/http_exchange.h"
#include "server/requests/json_body.h"
#include "server/requests/request_error.h"

namespace cria::server {

inline constexpr std::string_view kJsonContentType = "application/json; charset=utf-8";

// Writes the answer to one request, as one JSON value or as a stream of them. The stream begins
// with its first value, so that a failure before it has a status of its own.
class Response {
 public:
  enum class Style : uint8_t {
    kOpenAi,       // Streams are server-sent events that end with "data: [DONE]".
    kOllama,       // Streams have a JSON value on each line.
    kLlamaServer,  // Server-sent events, of which the last one is the whole answer.
    kAnthropic,    // Streams are server-sent events with the names that are their `type`.
    kResponses,    // Such events, too; errors have OpenAI's form.
  };

  Response(std::shared_ptr<HttpAnswer> http, Style style) : http_(std::move(http)), style_(style) {}

  void Send(const Json& value, int status = 200);
  void SendText(std::string_view content_type, std::string text);
  // JSON that is sent in parts. A failure after its beginning breaks it off, and so does a client
  // that takes it too slowly before EndTurn.
  void BeginText();
  void WriteText(std::string_view part);
  void EndText();
  // A value of a stream.
  void Stream(const Json& value);
  void EndStream();
  // Sends the error, if the answer is not over. `allowed`: the methods that the path takes, of an
  // error with the status 405.
  void Fail(const RequestError& error, std::string_view allowed = "");

  // Whether the client has gone away or takes nothing.
  bool is_gone() const;
  const std::atomic<bool>& gone() const { return http_->gone(); }
  bool has_begun() const { return state_ != State::kNew; }
  // How many values of a stream were sent.
  size_t num_values() const { return num_values_; }

  // Waits until no other large request is read. EndTurn lets the next one go on. Both are called on
  // the thread that answers.
  void TakeTurn(std::mutex& turn) { turn_ = std::unique_lock(turn); }
  void EndTurn() {
    if (turn_) turn_.unlock();
  }

 private:
  enum class State : uint8_t { kNew, kStreaming, kText, kOver };

  // `event` is the name of a server-sent event; "": it has none.
  void WriteValue(const std::string& value, std::string_view event = "");
  std::string ErrorText(const RequestError& error) const;
  bool has_event_names() const {
    return style_ == Style::kAnthropic || style_ == Style::kResponses;
  }

  std::shared_ptr<HttpAnswer> http_;
  Style style_;
  State state_ = State::kNew;
  size_t num_values_ = 0;
  bool is_stuck_ = false;  // Write has failed.
  std::unique_lock<std::mutex> turn_;
  std::chrono::steady_clock::time_point text_begin_;
};

}  // namespace cria::server
