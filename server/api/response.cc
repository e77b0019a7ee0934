#include "server/api/response.h"

#include <array>
#include <utility>
#include <vector>

#include "core/format.h"

namespace cria::server {

bool Response::is_gone() const {
  return is_stuck_ || http_->gone().load(std::memory_order_relaxed);
}

void Response::Send(const Json& value, int status) {
  state_ = State::kOver;
  http_->Send(status, kJsonContentType, Written(value));
}

void Response::SendText(std::string_view content_type, std::string text) {
  state_ = State::kOver;
  http_->Send(200, content_type, std::move(text));
}

void Response::BeginText() {
  state_ = State::kText;
  text_begin_ = std::chrono::steady_clock::now();
  http_->Begin(200, kJsonContentType);
}

void Response::WriteText(std::string_view part) {
  constexpr std::chrono::seconds kTurnTimeout{5};
  if (is_stuck_) return;
  const bool is_late = turn_ && std::chrono::steady_clock::now() > text_begin_ + kTurnTimeout;
  is_stuck_ = is_late || !http_->Write(part);
}

void Response::EndText() {
  state_ = State::kOver;
  // Otherwise the answer would look complete.
  if (!is_stuck_) http_->End();
}

void Response::WriteValue(const std::string& value, std::string_view event) {
  if (is_stuck_) return;
  std::string text;
  if (!event.empty()) text = Format("event: {}\n", event);
  text += style_ == Style::kOllama ? value + "\n" : "data: " + value + "\n\n";
  is_stuck_ = !http_->Write(text);
}

void Response::Stream(const Json& value) {
  if (state_ == State::kNew) {
    // Proxies must not gather what is to be shown at once.
    const std::array<HttpAnswer::Header, 2> headers = {
        {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
    http_->Begin(200, style_ == Style::kOllama ? "application/x-ndjson" : "text/event-stream",
                 headers);
    state_ = State::kStreaming;
  }
  WriteValue(Written(value), has_event_names() ? value.value("type", "") : "");
  ++num_values_;
}

void Response::EndStream() {
  if (style_ == Style::kOpenAi) WriteValue("[DONE]");
  state_ = State::kOver;
  http_->End();
}

std::string Response::ErrorText(const RequestError& error) const {
  switch (style_) {
    case Style::kOllama:
      return OllamaErrorBody(error);
    case Style::kAnthropic:
      return AnthropicErrorBody(error);
    case Style::kOpenAi:
    case Style::kLlamaServer:
      break;
    case Style::kResponses:
      if (state_ == State::kStreaming) return ResponsesErrorEvent(error, num_values_);
      break;
  }
  return ErrorBody(error);
}

void Response::Fail(const RequestError& error, std::string_view allowed) {
  const std::string body = ErrorText(error);
  switch (state_) {
    case State::kNew: {
      const bool may_retry = error.status() == 429 || error.status() == 503;
      std::vector<HttpAnswer::Header> headers;
      if (may_retry) headers.push_back({"Retry-After", "1"});
      if (!allowed.empty()) headers.push_back({"Allow", std::string(allowed)});
      http_->Send(error.status(), kJsonContentType, body, headers);
      break;
    }
    case State::kStreaming:
      WriteValue(body, has_event_names() ? "error" : "");
      http_->End();
      break;
    case State::kText:  // The client sees that it ends early.
    case State::kOver:
      break;
  }
  state_ = State::kOver;
}

}  // namespace cria::server
