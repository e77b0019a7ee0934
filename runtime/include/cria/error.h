#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace cria {

// What kind of error it is, grouped by who can correct it. Programs exit with 2 for kUsage and 1
// for every other code.
enum class ErrorCode : uint8_t {
  kUsage,        // An option or argument is wrong, or a call is not allowed now.
  kInvalidFile,  // A model file or checkpoint is malformed, truncated or inconsistent.
  kUnsupported,  // The file is well formed but needs something that is not supported.
  kNotFound,     // A file, tensor or field that must exist does not.
  kIo,           // Reading or writing failed.
  kOutOfMemory,  // There is too little memory, or a limit forbids it.
  kOutOfRange,   // A token id, position or length is outside the model's or session's range.
  kCancelled,    // The caller asked to stop.
  kInternal,     // A bug in Cria or in a library that it uses.
};

// A failure: a code, and a sentence that says what was wrong, where, and
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

// A value or an error. The compiler warns if it is ignored; a caller that needs neither casts it to
// void.
template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  // Converts from what std::expected's transform and similar functions return.
  Result(std::expected<T, Error> expected) : std::expected<T, Error>(std::move(expected)) {}
};

// The result of a function that returns no value but can fail.
using Status = Result<void>;

inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error(code, std::move(message)));
}

}  // namespace cria

#define CRIA_CONCAT_INNER(a, b) a##b
#define CRIA_CONCAT(a, b) CRIA_CONCAT_INNER(a, b)

// If `expression` is an error, returns it from the enclosing function.
#define CRIA_RETURN_IF_ERROR(expression)                                     \
  do {                                                                       \
    if (auto cria_status = (expression); !cria_status) [[unlikely]] {        \
      return std::unexpected<::cria::Error>(std::move(cria_status).error()); \
    }                                                                        \
  } while (false)

// `CRIA_ASSIGN_OR_RETURN(auto file, OpenFile(path));` assigns the value or returns the error.
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
