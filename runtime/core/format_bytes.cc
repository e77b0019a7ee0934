#include "core/format_bytes.h"

#include "core/format.h"

namespace cria {

std::string FormatBytes(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (number >= 1e9) return Format("{:.2f} GB", number / 1e9);
  if (number >= 1e6) return Format("{:.1f} MB", number / 1e6);
  if (number >= 1e3) return Format("{:.1f} kB", number / 1e3);
  return Format("{} B", bytes);
}

}  // namespace cria
