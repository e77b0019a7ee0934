#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "cria/error.h"

namespace cria::server {

// A request that is refused. What reads requests or answers them throws it; Api::Handle and jobs
// catch it and answer with OpenAI's error object. It never passes through the runtime.
class RequestError : public std::exception {
 public:
  // Longer texts of the request, which may be in the message, are cut off.
  RequestError(int status, std::string message, std::string param = "", std::string code = "");

  const char* what() const noexcept override { return message_.c_str(); }
  int status() const { return status_; }  // HTTP's status code.
  const std::string& message() const { return message_; }
  const std::string& param() const { return param_; }  // The field; "": none.
  const std::string& code() const { return code_; }    // For programs; "": none.

 private:
  int status_;
  std::string message_;
  std::string param_;
  std::string code_;
};

// Refuses a field of a request with a sentence that names it: "temperature is not a number".
[[noreturn]] inline void RefuseField(const std::string& field, const std::string& problem,
                                     std::string code = "") {
  throw RequestError(400, field + " " + problem, field, std::move(code));
}

// What a failure of the runtime is to a client.
RequestError ErrorOf(const Error& error, std::string param = "");

// The value, or throws ErrorOf.
template <typename T>
T ValueOf(Result<T> result, std::string param = "") {
  if (!result) throw ErrorOf(result.error(), std::move(param));
  return std::move(*result);
}
inline void ThrowIfError(const Status& status, std::string param = "") {
  if (!status) throw ErrorOf(status.error(), std::move(param));
}

// OpenAI's error object, as JSON.
std::string ErrorBody(const RequestError& error);
// The event of a response's stream that has failed.
std::string ResponsesErrorEvent(const RequestError& error, size_t sequence_number);
// Ollama's.
std::string OllamaErrorBody(const RequestError& error);
// Anthropic's.
std::string AnthropicErrorBody(const RequestError& error);

}  // namespace cria::server
