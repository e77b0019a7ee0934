#pragma once

#include <cstdint>
#include <string>

namespace cria {

// Bytes as text with powers of ten, such as "812.4 MB".
std::string FormatBytes(uint64_t bytes);

}  // namespace cria
