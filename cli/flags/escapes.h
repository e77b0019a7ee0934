#pragma once

#include <string>
#include <string_view>

namespace cria::cli {

// The text with \n, \t, \r, \\, \", \' and \xHH, where H is a hexadecimal digit, replaced by the
// bytes that they stand for. Any other backslash stays as it is, as in llama.cpp.
std::string ReadEscapes(std::string_view text);

}  // namespace cria::cli
