#include "posix/processor_state.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <vector>

#include "core/temperature_sensor.h"
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
  return {.temperature_celsius = TemperatureSensor::Open(root).ReadCelsius(),
          .frequency_hz = Frequency(root),
          .throttling = ReadThrottling(root)};
}

ProcessorState ReadProcessorState() { return ProcessorStateBelow(""); }

}  // namespace cria::platform
