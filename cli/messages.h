#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "cria/error.h"

namespace cria::cli {

// What both programs exit with when they fail.
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

// Text with names out of files, which must neither break the line nor drive the terminal.
inline std::string Printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char character) { return character < 0x20 || character == 0x7f; }, '?');
  return text;
}

// Prints "program: error: sentence" and returns the exit code that goes with the error.
inline int ReportError(const char* program, const Error& error) {
  std::fprintf(stderr, "%s: error: %s\n", program, Printable(error.message()).c_str());
  return error.code() == ErrorCode::kUsage ? kExitUsage : kExitError;
}

// From here on, the program ends with a sentence where memory runs out, which no thread of a pool
// could throw out of. What is large has been refused with an Error by then.
inline void InstallOutOfMemoryHandler(const char* program) {
  static const char* name = program;
  std::set_new_handler([] {
    std::fprintf(stderr, "%s: error: memory ran out; ask for less context or fewer threads\n",
                 name);
    std::_Exit(kExitError);
  });
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
