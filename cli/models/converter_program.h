#pragma once

#include <string>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// Where the standard output of cria-convert goes.
enum class ConverterOutput { kReturned, kDropped };

// Runs cria-convert as a process of its own, which is found beside this program or in PATH and ends
// when this process does. It keeps `lock`, a descriptor, open; -1: none. Its standard error is this
// process's. Ctrl-C stops it, which is kCancelled. Returns its standard output, or "" if that is
// dropped.
Result<std::string> RunConverter(const std::vector<std::string>& arguments, ConverterOutput output,
                                 int lock);

}  // namespace cria::cli
