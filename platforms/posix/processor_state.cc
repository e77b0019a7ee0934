#include "posix/processor_state.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "posix/small_file.h"

namespace cria::platform {
namespace {

std::optional<int64_t> ReadNumber(const std::string& path, int base = 10) {
  const std::string contents = ReadSmallFile(path);
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(contents.data(), contents.data() + contents.size(), number, base);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// The paths in a folder whose names begin and end like this.
std::vector<std::string> PathsIn(const std::string& folder, std::string_view beginning,
                                 std::string_view end) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(beginning) && name.ends_with(end)) paths.push_back(entry->path().string());
  }
  return paths;
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
  for (const std::string& zone : PathsIn(root + "/sys/class/thermal", "thermal_zone", "")) {
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

// The flags of the Raspberry Pi's firmware that `vcgencmd get_throttled` prints, in hexadecimal.
// Their file is of the device "soc:firmware", in the folder "soc" or, of a Pi 5, "soc@107c000000".
// The meaning of the bits is from the board's documentation.
std::optional<Throttling> ReadThrottling(const std::string& root) {
  constexpr int64_t kUnderVoltage = 1;
  // The frequency is capped, it is throttled, and the soft limit of the temperature is reached.
  constexpr int64_t kSlowed = 2 | 4 | 8;
  constexpr int kSinceStart = 16;  // The shift to the bits that stay set until the next start.
  const std::string devices = root + "/sys/devices/platform";
  std::vector<std::string> folders = PathsIn(devices, "soc", "");
  folders.push_back(devices);
  for (const std::string& folder : folders) {
    for (const std::string& firmware : PathsIn(folder, "soc", "firmware")) {
      const std::optional<int64_t> flags = ReadNumber(firmware + "/get_throttled", 16);
      if (!flags) continue;
      const int64_t earlier = *flags >> kSinceStart;
      return Throttling{.is_slowed = (*flags & kSlowed) != 0,
                        .is_under_voltage = (*flags & kUnderVoltage) != 0,
                        .was_slowed = (earlier & kSlowed) != 0,
                        .was_under_voltage = (earlier & kUnderVoltage) != 0};
    }
  }
  return std::nullopt;
}

}  // namespace

ProcessorState ProcessorStateBelow(const std::string& root) {
  return {.temperature_celsius = Temperature(root),
          .frequency_hz = Frequency(root),
          .throttling = ReadThrottling(root)};
}

ProcessorState ReadProcessorState() { return ProcessorStateBelow(""); }

}  // namespace cria::platform
