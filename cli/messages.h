#pragma once

#include <cstdio>

#include "cli/remedy.h"
#include "cli/terminal/printable.h"
#include "cria/error.h"

namespace cria::cli {

// Exit codes of both programs after a failure.
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
// After Ctrl-C, as shells have it: 128 and the number of the signal.
inline constexpr int kExitInterrupted = 130;

// Prints "program: error: sentence" and returns the exit code that goes with the error.
inline int ReportError(const char* program, const Error& error) {
  const bool is_stopped = error.code() == ErrorCode::kCancelled;
  std::fprintf(stderr, "%s: %s%s\n", program,
               is_stopped ? "" : "error: ", Printable(Sentence(error)).c_str());
  if (is_stopped) return kExitInterrupted;
  return error.code() == ErrorCode::kUsage ? kExitUsage : kExitError;
}

// The exit code of a program that succeeded: it fails if its output could not be written, for
// example to a full disk.
inline int FinishOutput(const char* program) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  std::fprintf(stderr, "%s: error: standard output cannot be written; is the disk full?\n",
               program);
  return kExitError;
}

}  // namespace cria::cli
