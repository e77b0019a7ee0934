#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace cria {

// What kind of thing went wrong, grouped by who can mend it. Programs exit 2 for kUsage and 1 for
// every other code.
enum class ErrorCode : uint8_t {
  kUsage,        // The caller asked for something that cannot be: an option, an order of calls.
  kInvalidFile,  // A model file or checkpoint is malformed, truncated or inconsistent.
  kUnsupported,  // The file is well formed but says something this version does not know.
  kNotFound,     // A file, tensor or field that must exist does not.
  kIo,           // The operating system refused to read or write.
  kOutOfMemory,  // Memory could not be had, or would exceed the limit that was set.
  kOutOfRange,   // A token id, position or length lies outside what the model or session allows.
  kCancelled,    // The caller asked to stop.
  kInternal,     // A bug in Cria or in a library below it.
};

// A failure: a code for programs and a sentence for people, which says what was wrong, where, and
// what to do about it.
class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

// A value or an error. It cannot be ignored: a caller that needs neither casts it to void.
template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  // What std::expected's own transform and the like return.
  Result(std::expected<T, Error> expected) : std::expected<T, Error>(std::move(expected)) {}
};

// The result of something that yields nothing but can fail.
using Status = Result<void>;

inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error(code, std::move(message)));
}

}  // namespace cria

#define CRIA_CONCAT_INNER(a, b) a##b
#define CRIA_CONCAT(a, b) CRIA_CONCAT_INNER(a, b)

// Returns the error of `expression` from the enclosing function, or goes on.
#define CRIA_RETURN_IF_ERROR(expression)                                     \
  do {                                                                       \
    if (auto cria_status = (expression); !cria_status) [[unlikely]] {        \
      return std::unexpected<::cria::Error>(std::move(cria_status).error()); \
    }                                                                        \
  } while (false)

// `CRIA_ASSIGN_OR_RETURN(auto file, OpenFile(path))`: the value, or return the error.
#define CRIA_ASSIGN_OR_RETURN(target, expression) \
  CRIA_ASSIGN_OR_RETURN_INNER(CRIA_CONCAT(cria_result_, __LINE__), target, expression)
// NOLINTBEGIN(bugprone-macro-parentheses): `target` may be a declaration.
#define CRIA_ASSIGN_OR_RETURN_INNER(result, target, expression)       \
  auto result = (expression);                                         \
  if (!result) [[unlikely]] {                                         \
    return std::unexpected<::cria::Error>(std::move(result).error()); \
  }                                                                   \
  target = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)
