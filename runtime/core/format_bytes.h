#pragma once

#include <cstdint>
#include <string>

namespace cria {

// "812.4 MB", with powers of ten.
std::string FormatBytes(uint64_t bytes);

}  // namespace cria
