#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cria::platform {

// The contents of a file of /proc or /sys, whose size is not known before; empty on failure.
std::string ReadSmallFile(const std::string& path);

// The paths in a folder whose names begin and end like this; empty if there is no such folder.
std::vector<std::string> PathsIn(const std::string& folder, std::string_view beginning,
                                 std::string_view end);

}  // namespace cria::platform
