#pragma once

#include <string>

namespace cria::platform {

// The contents of a file of /proc or /sys, whose size is not known before; empty on failure.
std::string ReadSmallFile(const std::string& path);

}  // namespace cria::platform
