#pragma once

#include <string>

namespace cria::platform {

// A file of /proc or /sys, whose size is unknown before it is read; empty on failure.
std::string ReadSmallFile(const std::string& path);

}  // namespace cria::platform
