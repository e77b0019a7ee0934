#pragma once

#include <string_view>

namespace cria::ops {

// Highway's name for the instruction set that the operators use on this processor: "AVX2",
// "NEON_BF16", …
std::string_view SimdTargetName();

}  // namespace cria::ops
