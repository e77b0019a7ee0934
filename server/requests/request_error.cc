#include "server/requests/request_error.h"

#include "core/utf8.h"
#include "server/requests/json_body.h"

namespace cria::server {
namespace {

std::string_view TypeOf(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string_view AnthropicTypeOf(int status) {
  switch (status) {
    case 413:
      return "request_too_large";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : TypeOf(status);
  }
}

// The beginning of a text, up to a whole character.
std::string Shortened(std::string text) {
  constexpr size_t kMaxBytes = 1000;
  if (text.size() <= kMaxBytes) return text;
  text.resize(kMaxBytes);
  text.resize(ValidUtf8Prefix(text));
  return text + "...";
}

Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

RequestError::RequestError(int status, std::string message, std::string param, std::string code)
    : status_(status),
      message_(Shortened(std::move(message))),
      param_(Shortened(std::move(param))),
      code_(std::move(code)) {}

RequestError ErrorOf(const Error& error, std::string param) {
  switch (error.code()) {
    case ErrorCode::kUsage:
    case ErrorCode::kUnsupported:
      return {400, error.message(), std::move(param)};
    case ErrorCode::kOutOfRange: {
      // Clients answer this code by shortening the conversation and asking again.
      const bool is_too_long = error.remedy().kind == RemedyKind::kLargerContext;
      return {400, error.message(), std::move(param), is_too_long ? "context_length_exceeded" : ""};
    }
    case ErrorCode::kNotFound:
      return {404, error.message(), std::move(param)};
    case ErrorCode::kOutOfMemory:
      return {503, error.message(), std::move(param), "out_of_memory"};
    case ErrorCode::kCancelled:
      return {503, error.message(), std::move(param), "cancelled"};
    case ErrorCode::kInvalidFile:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      break;
  }
  return {500, error.message(), std::move(param)};
}

std::string ErrorBody(const RequestError& error) {
  return Written({{"error",
                   {{"message", error.message()},
                    {"type", TypeOf(error.status())},
                    {"param", OrNull(error.param())},
                    {"code", OrNull(error.code())}}}});
}

std::string ResponsesErrorEvent(const RequestError& error, size_t sequence_number) {
  return Written({{"type", "error"},
                  {"sequence_number", sequence_number},
                  {"code", OrNull(error.code())},
                  {"message", error.message()},
                  {"param", OrNull(error.param())}});
}

std::string AnthropicErrorBody(const RequestError& error) {
  return Written(
      {{"type", "error"},
       {"error", {{"type", AnthropicTypeOf(error.status())}, {"message", error.message()}}}});
}

std::string OllamaErrorBody(const RequestError& error) {
  return Written({{"error", error.message()}});
}

}  // namespace cria::server
