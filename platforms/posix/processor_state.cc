#include "posix/processor_state.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "posix/small_file.h"

namespace cria::platform {
namespace {

std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::string contents = ReadSmallFile(path);
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(contents.data(), contents.data() + contents.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// Whether a thermal zone of this type is a sensor of the processor: "cpu-thermal" (Raspberry Pi),
// "x86_pkg_temp", "bigcore0-thermal" (Rockchip), "cpu-1-2-usr" (Qualcomm), "CPU-therm" (Nvidia).
bool IsOfProcessor(std::string type) {
  std::ranges::transform(type, type.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return type.contains("cpu") || type.contains("core") || type.contains("pkg");
}

// The temperature of the hottest sensor of the processor. If no zone is named as such a sensor,
// that of the first zone, which is the processor's on most boards. The kernel's unit is a
// thousandth of a degree.
std::optional<double> Temperature(const std::string& root) {
  std::optional<int64_t> hottest, first;
  std::error_code error;
  std::filesystem::directory_iterator entry(root + "/sys/class/thermal", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string zone = entry->path().string();
    if (!entry->path().filename().string().starts_with("thermal_zone")) continue;
    const std::optional<int64_t> temperature = ReadNumber(zone + "/temp");
    if (!temperature) continue;
    if (zone.ends_with("/thermal_zone0")) first = temperature;
    if (IsOfProcessor(ReadSmallFile(zone + "/type"))) {
      hottest = std::max(*temperature, hottest.value_or(*temperature));
    }
  }
  if (!hottest) hottest = first;
  return hottest.transform([](int64_t value) { return static_cast<double>(value) / 1000.0; });
}

// The frequency of the fastest processor that this process may run on. The kernel's unit is
// kilohertz.
std::optional<uint64_t> Frequency(const std::string& root) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  std::optional<uint64_t> highest;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::optional<int64_t> kilohertz = ReadNumber(
        root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq");
    if (kilohertz && *kilohertz > 0) {
      highest = std::max(static_cast<uint64_t>(*kilohertz) * 1000, highest.value_or(0));
    }
  }
  return highest;
}

}  // namespace

ProcessorState ProcessorStateBelow(const std::string& root) {
  return {.temperature_celsius = Temperature(root), .frequency_hz = Frequency(root)};
}

ProcessorState ReadProcessorState() { return ProcessorStateBelow(""); }

}  // namespace cria::platform
