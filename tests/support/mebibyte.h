#pragma once

#include <cstdint>

namespace cria::support {

inline constexpr uint64_t kMebibyte = uint64_t{1} << 20;

}  // namespace cria::support
