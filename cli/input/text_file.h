#pragma once

#include <cstddef>
#include <string>

#include "cria/error.h"

namespace cria::cli {

// How long a text from outside the program may be.
struct TextBound {
  size_t max_bytes;
  // The end of the error's sentence "... has more than the 4096 bytes that".
  std::string reason = "such a file may have";
};

// Texts that are measured, calibrated with or divided into tokens: many times those that people
// evaluate with, and the length of the 16 million tokens that a calibration may use.
TextBound LongText();

// All of a file; "-" is standard input. Fails with kInvalidFile if it is longer: a device such as
// /dev/zero has no end, and so no more than the bound is read.
Result<std::string> ReadTextFile(const std::string& path, const TextBound& bound);

// Reads a line of standard input, without its line feed. Returns whether there was one. Fails with
// kInvalidFile if it is longer.
Result<bool> ReadInputLine(std::string& line, const TextBound& bound);

}  // namespace cria::cli
