#include "cli/flags/byte_count.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace cria::cli {

std::optional<uint64_t> ParseByteCount(std::string_view text) {
  constexpr std::string_view kUnits = "kmgt";
  uint64_t bytes = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc()) return std::nullopt;
  std::string unit(stop, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  if (unit.starts_with(' ')) unit.erase(0, 1);
  if (unit.ends_with('b')) unit.pop_back();
  const bool is_binary = unit.size() == 2 && unit.ends_with('i');
  if (is_binary) unit.pop_back();
  if (unit.empty()) return bytes;
  const size_t power = kUnits.find(unit.front());
  if (unit.size() != 1 || power == kUnits.npos) return std::nullopt;
  const uint64_t step = is_binary ? 1024 : 1000;
  for (size_t i = 0; i <= power; ++i) {
    if (bytes > UINT64_MAX / step) return std::nullopt;
    bytes *= step;
  }
  return bytes;
}

}  // namespace cria::cli
