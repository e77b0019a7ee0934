#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria {

// Parses JSON text that must be an object. `where` begins every error sentence. These are errors,
// too: two values with one name in an object, because readers differ in which of them they use;
// nesting so deep that recursive functions could run out of stack; and more values than the file of
// any checkpoint has. Takes time in proportion to the text.
Result<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view where);

// Reads and parses a whole file of at most `max_bytes`.
Result<nlohmann::json> ReadJsonFile(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace cria
