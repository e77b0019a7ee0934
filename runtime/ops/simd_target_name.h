#pragma once

#include <string_view>

namespace cria::ops {

// The name of the instruction set that the operators use on this processor: Highway's ("AVX2",
// "NEON_WITHOUT_AES", …), or "NEON_DOTPROD".
std::string_view SimdTargetName();

// Whether operators use the dot products of int8 of ARMv8.2 (SDOT); false on other processors.
bool UsesArmDotProducts();

// For tests: from now on, UsesArmDotProducts() is false if `allowed` is. Not thread-safe.
void AllowArmDotProducts(bool allowed);

}  // namespace cria::ops
