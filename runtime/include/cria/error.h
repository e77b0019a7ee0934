#pragma once

#include <array>
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

// What helps against an error, if that is a setting or a command of the program around the library.
// The library's sentences name no flags: each front end appends the remedy to the sentence in its
// own words (cli/remedy.cc, runtime/c_api/remedy.cc).
enum class RemedyKind : uint8_t {
  kNone,               // The sentence says what to do, or nothing helps.
  kChooseContext,      // Another length of the context.
  kLargerContext,      // A longer context.
  kLessContext,        // A shorter context, or a smaller type of the KV cache.
  kKeepLess,           // Fewer tokens that a shift keeps, or a longer context.
  kChooseThreads,      // Another number of threads.
  kFewerThreads,       // Fewer threads.
  kFitMemory,          // One of fitting_context_tokens, or no limit of memory.
  kConvert,            // Convert the checkpoint, with the converter of this version.
  kConvertCheckpoint,  // Convert Remedy::checkpoint, which was given instead of a model file.
  kCopyOrConvert,      // Copy the file again, or convert the checkpoint again.
  kConvertVocabulary,  // Convert the tokenizer alone.
  kChatTemplate,       // Another chat template, or none.
  kPack,               // Pack the model on this machine.
  kPackStandalone,     // Pack the portable model file into a standalone one on this machine.
  kCheckFile,          // Compare the file with its checksums.
  kOverwrite,          // Allow to replace a file that Cria did not write.
  kDownloadFolder,     // Keep downloads in a folder on another disk.
  kMoreConstraints,    // Memory for more constraints.
};

struct Remedy {
  // Implicit: most remedies are a kind alone.
  Remedy(RemedyKind remedy_kind = RemedyKind::kNone) : kind(remedy_kind) {}

  RemedyKind kind;
  // kFitMemory only: the longest context that fits with each KvType, in tokens; 0 if none fits.
  std::array<uint32_t, 3> fitting_context_tokens = {};
  // kConvertCheckpoint only: the file or folder to convert.
  std::string checkpoint = {};
};

// A failure: a code for programs, and a sentence for people. The sentence says what was wrong and
// where; it or the remedy says what to do.
//
// An error is one pointer, because hundreds of places move errors and hardly ever run. An error
// that was moved from can only be destroyed or assigned to.
class Error {
 public:
  Error(ErrorCode code, std::string message, RemedyKind remedy = RemedyKind::kNone);
  Error(ErrorCode code, std::string message, Remedy remedy);
  Error(const Error& other);
  Error(Error&& other) noexcept : details_(std::exchange(other.details_, nullptr)) {}
  Error& operator=(Error other) noexcept {
    std::swap(details_, other.details_);
    return *this;
  }
  ~Error() {
    if (details_ != nullptr) Free(details_);
  }

  ErrorCode code() const { return details_->code; }
  const std::string& message() const { return details_->message; }
  const Remedy& remedy() const { return details_->remedy; }

 private:
  struct Details {
    ErrorCode code;
    Remedy remedy;
    std::string message;
  };

  static void Free(const Details* details);

  const Details* details_;
};

// A value or an error. The compiler warns if a result is ignored; to ignore one, cast it to void.
template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  // Converts from what std::expected's transform and similar functions return.
  Result(std::expected<T, Error> expected) : std::expected<T, Error>(std::move(expected)) {}
};

// The result of a function that returns no value but can fail.
using Status = Result<void>;

// Not inline, because hundreds of places call it, and hardly ever run. Most have no more than the
// kind of a remedy.
std::unexpected<Error> Fail(ErrorCode code, std::string message,
                            RemedyKind remedy = RemedyKind::kNone);
std::unexpected<Error> Fail(ErrorCode code, std::string message, Remedy remedy);

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
