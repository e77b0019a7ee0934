#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria {

// Whether a checkpoint has this file. One that cannot be looked at counts as absent.
bool FileExists(const std::filesystem::path& path);

// Parses JSON text that must be an object. `where` begins every error sentence. Two values under
// one name are an error, since readers differ in which of them counts; so are nesting so deep that
// functions that call themselves could run out of stack, and more values than any checkpoint's file
// has. Takes time in proportion to the text.
Result<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view where);

// Reads and parses a whole file of at most `max_bytes`.
Result<nlohmann::json> ReadJsonFile(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace cria
