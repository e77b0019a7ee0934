#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cria::support {

// The whole file as bytes. This function and the next throw std::runtime_error naming the path.
std::string ReadFile(const std::filesystem::path& path);

// Makes or replaces the file.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

// The names of everything in a folder, sorted; none where there is no folder.
std::vector<std::string> FileNames(const std::filesystem::path& folder);

}  // namespace cria::support
