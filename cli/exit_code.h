#pragma once

#include <algorithm>
#include <cstdio>
#include <string>

#include "cria/error.h"

namespace cria::cli {

// What both programs exit with when they fail.
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

// Prints "program: error: sentence" and returns the exit code that goes with the error. Sentences
// quote names out of files, which must neither break the line nor drive the terminal.
inline int ReportError(const char* program, const Error& error) {
  std::string sentence = error.message();
  std::ranges::replace_if(
      sentence, [](unsigned char character) { return character < 0x20 || character == 0x7f; }, '?');
  std::fprintf(stderr, "%s: error: %s\n", program, sentence.c_str());
  return error.code() == ErrorCode::kUsage ? kExitUsage : kExitError;
}

// The exit code at the end of a program that went well: results that could not be written, to a
// full disk for example, are a failure too.
inline int FinishOutput(const char* program) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  std::fprintf(stderr, "%s: error: standard output cannot be written; is the disk full?\n",
               program);
  return kExitError;
}

}  // namespace cria::cli
