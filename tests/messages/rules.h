#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "messages/message_reader.h"

namespace cria {

inline std::optional<nlohmann::ordered_json> ParseJson(const std::string& text) {
  auto value = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

inline constexpr MessageRules kRules = {.parse = ParseJson};

}  // namespace cria
