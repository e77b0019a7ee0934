#pragma once

#include <string_view>

namespace cria::cli {

// Prints a line for a person, with a line feed, on standard error. At a terminal, its rows end
// between words.
void Tell(std::string_view line);

}  // namespace cria::cli
