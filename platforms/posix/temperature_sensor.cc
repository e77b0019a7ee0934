#include "core/temperature_sensor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "core/ascii.h"
#include "posix/small_file.h"

namespace cria::platform {
namespace {

// Whether a thermal zone of this type is a sensor of the processor: "cpu-thermal" (Raspberry Pi),
// "x86_pkg_temp", "bigcore0-thermal" (Rockchip), "cpu-1-2-usr" (Qualcomm), "CPU-therm" (Nvidia).
bool IsOfProcessor(std::string type) {
  std::ranges::transform(type, type.begin(), ToLower);
  return type.contains("cpu") || type.contains("core") || type.contains("pkg");
}

// The kernel's unit is a thousandth of a degree. A file of /sys is made anew when it is read from
// its beginning.
std::optional<double> ReadZone(int descriptor) {
  char buffer[32];
  const ssize_t count = pread(descriptor, buffer, sizeof buffer, 0);
  if (count <= 0) return std::nullopt;
  int64_t thousandths = 0;
  const auto [end, error] = std::from_chars(buffer, buffer + count, thousandths);
  if (error != std::errc()) return std::nullopt;
  return static_cast<double>(thousandths) / 1000.0;
}

}  // namespace

TemperatureSensor TemperatureSensor::Open(const std::string& root) {
  TemperatureSensor sensor;
  for (const std::string& zone : PathsIn(root + "/sys/class/thermal", "thermal_zone", "")) {
    // If no zone is named as a sensor of the processor, the first one is the processor's on most
    // boards.
    const bool is_first = zone.ends_with("/thermal_zone0");
    const bool is_of_processor = IsOfProcessor(ReadSmallFile(zone + "/type"));
    if (!is_first && !is_of_processor) continue;
    const int descriptor = open((zone + "/temp").c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (is_of_processor) {
      sensor.of_processor_.push_back(descriptor);
    } else {
      sensor.first_ = descriptor;
    }
  }
  return sensor;
}

TemperatureSensor& TemperatureSensor::operator=(TemperatureSensor&& other) noexcept {
  std::swap(of_processor_, other.of_processor_);
  std::swap(first_, other.first_);
  return *this;
}

TemperatureSensor::~TemperatureSensor() {
  for (const int descriptor : of_processor_) close(descriptor);
  if (first_ >= 0) close(first_);
}

std::optional<double> TemperatureSensor::ReadCelsius() const {
  std::optional<double> hottest;
  for (const int descriptor : of_processor_) {
    const std::optional<double> celsius = ReadZone(descriptor);
    if (celsius) hottest = std::max(*celsius, hottest.value_or(*celsius));
  }
  return hottest || first_ < 0 ? hottest : ReadZone(first_);
}

}  // namespace cria::platform
