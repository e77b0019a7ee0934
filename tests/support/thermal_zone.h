#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "support/files.h"

namespace cria::support {

// Writes the files of a sensor of temperature below a folder that stands for the system's root.
// `temperature` is in thousandths of a degree.
inline void WriteThermalZone(const std::filesystem::path& root, int zone, std::string_view type,
                             std::string_view temperature) {
  const std::filesystem::path folder =
      root / "sys/class/thermal" / ("thermal_zone" + std::to_string(zone));
  std::filesystem::create_directories(folder);
  WriteFile(folder / "type", std::string(type) + "\n");
  WriteFile(folder / "temp", temperature);
}

}  // namespace cria::support
