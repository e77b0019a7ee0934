#include "core/format_bytes.h"

#include <format>

namespace cria {

std::string FormatBytes(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (number >= 1e9) return std::format("{:.2f} GB", number / 1e9);
  if (number >= 1e6) return std::format("{:.1f} MB", number / 1e6);
  if (number >= 1e3) return std::format("{:.1f} kB", number / 1e3);
  return std::format("{} B", bytes);
}

}  // namespace cria
