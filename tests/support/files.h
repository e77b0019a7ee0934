#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cria::support {

// The contents of a file. This function and the next throw std::runtime_error with the path.
std::string ReadFile(const std::filesystem::path& path);

// Creates or replaces the file.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

// The names of everything in a folder, sorted; empty if the folder does not exist.
std::vector<std::string> FileNames(const std::filesystem::path& folder);

}  // namespace cria::support
