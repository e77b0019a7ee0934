#include "serve/api/response.h"

#include <array>
#include <utility>

namespace cria::serve {
namespace {

constexpr std::string_view kJsonType = "application/json; charset=utf-8";

}  // namespace

bool Response::is_gone() const {
  return is_stuck_ || http_->gone().load(std::memory_order_relaxed);
}

void Response::Send(const Json& value, int status) {
  state_ = State::kOver;
  http_->Send(status, kJsonType, Written(value));
}

void Response::SendText(std::string_view content_type, std::string text) {
  state_ = State::kOver;
  http_->Send(200, content_type, std::move(text));
}

void Response::WriteValue(const std::string& value) {
  if (is_stuck_) return;
  const std::string text = style_ == Style::kOpenAi ? "data: " + value + "\n\n" : value + "\n";
  is_stuck_ = !http_->Write(text);
}

void Response::Stream(const Json& value) {
  if (state_ == State::kNew) {
    // Proxies must not gather what is to be shown at once.
    const std::array<HttpAnswer::Header, 2> headers = {
        {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
    http_->Begin(200, style_ == Style::kOpenAi ? "text/event-stream" : "application/x-ndjson",
                 headers);
    state_ = State::kStreaming;
  }
  WriteValue(Written(value));
}

void Response::EndStream() {
  if (style_ == Style::kOpenAi) WriteValue("[DONE]");
  state_ = State::kOver;
  http_->End();
}

void Response::Fail(const RequestError& error) {
  const std::string body = style_ == Style::kOpenAi ? ErrorBody(error) : OllamaErrorBody(error);
  switch (state_) {
    case State::kNew: {
      const std::array<HttpAnswer::Header, 1> retry = {{{"Retry-After", "1"}}};
      const bool may_retry = error.status() == 429 || error.status() == 503;
      http_->Send(error.status(), kJsonType, body,
                  may_retry ? std::span<const HttpAnswer::Header>(retry)
                            : std::span<const HttpAnswer::Header>());
      break;
    }
    case State::kStreaming:
      WriteValue(body);
      http_->End();
      break;
    case State::kOver:
      break;
  }
  state_ = State::kOver;
}

}  // namespace cria::serve
