#include "cli/flags/byte_count.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/ascii.h"

namespace cria::cli {

std::optional<uint64_t> ParseByteCount(std::string_view text) {
  constexpr std::string_view kUnits = "kmgt";
  uint64_t bytes = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc()) return std::nullopt;
  const char* const end = text.data() + text.size();
  // Decimals, of the unit.
  uint64_t decimals = 0;
  uint64_t decimal_parts = 1;
  if (stop != end && *stop == '.') {
    constexpr ptrdiff_t kMaxDecimals = 6;
    const char* const first = stop + 1;
    const auto fraction = std::from_chars(first, end, decimals);
    if (fraction.ec != std::errc() || fraction.ptr - first > kMaxDecimals) return std::nullopt;
    for (const char* digit = first; digit != fraction.ptr; ++digit) decimal_parts *= 10;
    stop = fraction.ptr;
  }
  std::string unit(stop, end);
  std::ranges::transform(unit, unit.begin(), ToLower);
  if (unit.starts_with(' ')) unit.erase(0, 1);
  if (unit.ends_with('b')) unit.pop_back();
  const bool is_binary = unit.size() == 2 && unit.ends_with('i');
  if (is_binary) unit.pop_back();
  if (unit.empty()) return decimal_parts == 1 ? std::optional(bytes) : std::nullopt;
  const size_t power = kUnits.find(unit.front());
  if (unit.size() != 1 || power == kUnits.npos) return std::nullopt;
  const uint64_t step = is_binary ? 1024 : 1000;
  uint64_t unit_bytes = 1;
  for (size_t i = 0; i <= power; ++i) unit_bytes *= step;
  // At most 2^40 * 10^6.
  const uint64_t of_decimals = unit_bytes * decimals / decimal_parts;
  if (bytes > (UINT64_MAX - of_decimals) / unit_bytes) return std::nullopt;
  return bytes * unit_bytes + of_decimals;
}

}  // namespace cria::cli
