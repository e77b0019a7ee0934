#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cria::platform {

// The processor's sensors of temperature. Their files stay open, so that reading them allocates
// nothing.
class TemperatureSensor {
 public:
  // Opens all sensors that there are; none is no error. `root` is a prefix of all paths: empty for
  // the system's own files; tests pass others.
  static TemperatureSensor Open(const std::string& root);

  TemperatureSensor(TemperatureSensor&& other) noexcept { *this = std::move(other); }
  TemperatureSensor& operator=(TemperatureSensor&& other) noexcept;
  ~TemperatureSensor();

  // The temperature of the hottest sensor, in degrees Celsius; absent if none can be read.
  std::optional<double> ReadCelsius() const;

 private:
  TemperatureSensor() = default;

  // Descriptors of the sensors that are named as the processor's.
  std::vector<int> of_processor_;
  // The sensor that is read if no other can be; -1: none.
  int first_ = -1;
};

}  // namespace cria::platform
