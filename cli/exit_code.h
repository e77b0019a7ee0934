#pragma once

#include <cstdio>

#include "cria/error.h"

namespace cria::cli {

// What both programs exit with when they fail.
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

// Prints "program: error: sentence" and returns the exit code that goes with the error.
inline int ReportError(const char* program, const Error& error) {
  std::fprintf(stderr, "%s: error: %s\n", program, error.message().c_str());
  return error.code() == ErrorCode::kUsage ? kExitUsage : kExitError;
}

}  // namespace cria::cli
