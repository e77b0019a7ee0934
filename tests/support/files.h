#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cria::support {

// The whole file as bytes. Both functions throw std::runtime_error naming the path.
std::string ReadFile(const std::filesystem::path& path);

// Makes or replaces the file.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

}  // namespace cria::support
