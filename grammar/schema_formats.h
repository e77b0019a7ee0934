#pragma once

#include <string_view>

namespace cria::grammar {

// The pattern that a whole string of this format matches; empty if the format is not checked.
std::string_view FormatPattern(std::string_view format);

}  // namespace cria::grammar
