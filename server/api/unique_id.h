#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cria::server {

// So many random letters and digits.
std::string UniqueId(size_t length);
// A seed of 32 bits, so that it can be typed.
uint32_t RandomSeed();

}  // namespace cria::server
