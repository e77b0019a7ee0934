#include "core/temperature_sensor.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"
#include "support/thermal_zone.h"

namespace cria::platform {
namespace {

using support::WriteThermalZone;

TEST(TemperatureSensorTest, NoSensorIsNoError) {
  const support::TemporaryDirectory root;
  EXPECT_FALSE(TemperatureSensor::Open(root.path()).ReadCelsius());
}

TEST(TemperatureSensorTest, ReadsWhatItsFilesHaveNow) {
  const support::TemporaryDirectory root;
  WriteThermalZone(root.path(), 0, "cpu-thermal", "48312\n");
  const TemperatureSensor sensor = TemperatureSensor::Open(root.path());
  EXPECT_EQ(sensor.ReadCelsius(), 48.312);
  WriteThermalZone(root.path(), 0, "cpu-thermal", "9000\n");
  EXPECT_EQ(sensor.ReadCelsius(), 9.0);
  WriteThermalZone(root.path(), 0, "cpu-thermal", "");
  EXPECT_FALSE(sensor.ReadCelsius());
  WriteThermalZone(root.path(), 0, "cpu-thermal", "-5500\n");
  EXPECT_EQ(sensor.ReadCelsius(), -5.5);
}

TEST(TemperatureSensorTest, TheHottestThatCanBeReadCounts) {
  const support::TemporaryDirectory root;
  WriteThermalZone(root.path(), 0, "battery", "99000\n");
  WriteThermalZone(root.path(), 1, "CPU-therm", "41000\n");
  WriteThermalZone(root.path(), 2, "bigcore0-thermal", "57500\n");
  const TemperatureSensor sensor = TemperatureSensor::Open(root.path());
  EXPECT_EQ(sensor.ReadCelsius(), 57.5);
  WriteThermalZone(root.path(), 2, "bigcore0-thermal", "?\n");
  EXPECT_EQ(sensor.ReadCelsius(), 41.0);
}

TEST(TemperatureSensorTest, IsMovedWithItsFiles) {
  const support::TemporaryDirectory root;
  WriteThermalZone(root.path(), 0, "soc-thermal", "45000\n");
  TemperatureSensor sensor = TemperatureSensor::Open(root.path());
  const TemperatureSensor moved = std::move(sensor);
  EXPECT_EQ(moved.ReadCelsius(), 45.0);
}

}  // namespace
}  // namespace cria::platform
