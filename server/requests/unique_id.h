#pragma once

#include <cstddef>
#include <string>

namespace cria::server {

// So many random letters and digits.
std::string UniqueId(size_t length);

}  // namespace cria::server
