#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cria::cli {

// What a sentence says behind a name that does not exist: " (the nearest is NAME)" with the known
// name from which it differs in few characters, or "" if there is none.
std::string NearestName(std::string_view name, std::span<const std::string> known);

}  // namespace cria::cli
