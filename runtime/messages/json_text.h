#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace cria {

// The value and all that are in it.
size_t CountValues(const nlohmann::ordered_json& value);

// The value as JSON on one line. Bytes that are not UTF-8 are replaced. A binary value is the text
// of a number that neither 64 bits nor a double keep.
std::string WriteJson(const nlohmann::ordered_json& value);

// The numbers of an embedding, each with the digits that a float needs: "0.1,-0.25".
std::string WriteNumbers(std::span<const float> numbers, char separator = ',');

}  // namespace cria
