#pragma once

#include <string_view>

namespace cria::cli {

// What to do instead of an option that other programs have, above all llama.cpp's, and Cria has
// not; "" if the name is unknown.
std::string_view InPlaceOfForeignOption(std::string_view name);

}  // namespace cria::cli
