#pragma once

#include <filesystem>
#include <string_view>

namespace cria {

// Whether the file begins with these bytes. False if it cannot be read.
bool BeginsWith(const std::filesystem::path& path, std::string_view magic);

}  // namespace cria
