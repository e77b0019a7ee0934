#include "posix/processor_state.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/thermal_zone.h"

namespace cria::platform {
namespace {

// A root directory with files of the test's making.
class ProcessorStateTest : public testing::Test {
 protected:
  void Write(const std::string& path, std::string_view contents) {
    const std::filesystem::path file = root_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    support::WriteFile(file, contents);
  }
  void WriteZone(int zone, const std::string& type, std::string_view temperature) {
    support::WriteThermalZone(root_.path(), zone, type, temperature);
  }
  void WriteFrequency(int cpu, std::string_view kilohertz) {
    Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq",
          kilohertz);
  }
  ProcessorState State() const { return ProcessorStateBelow(root_.path()); }

  support::TemporaryDirectory root_;
};

// A processor that this process may run on, or may not.
int FirstProcessor(bool is_allowed) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  int cpu = 0;
  while (static_cast<bool>(CPU_ISSET(cpu, &allowed)) != is_allowed) ++cpu;
  return cpu;
}

TEST_F(ProcessorStateTest, NothingIsToldWhereNothingIs) {
  EXPECT_FALSE(State().temperature_celsius);
  EXPECT_FALSE(State().frequency_hz);
}

TEST_F(ProcessorStateTest, ARaspberryPi) {
  WriteZone(0, "cpu-thermal", "48312\n");
  WriteFrequency(FirstProcessor(true), "2400000\n");
  EXPECT_EQ(State().temperature_celsius, 48.312);
  EXPECT_EQ(State().frequency_hz, 2'400'000'000u);
}

TEST_F(ProcessorStateTest, WhatThePisFirmwareSays) {
  EXPECT_FALSE(State().throttling);
  const std::string pi4 = "sys/devices/platform/soc/soc:firmware/get_throttled";
  Write(pi4, "0\n");
  ASSERT_TRUE(State().throttling);
  EXPECT_FALSE(State().throttling->is_slowed || State().throttling->is_under_voltage);
  EXPECT_FALSE(State().throttling->was_slowed || State().throttling->was_under_voltage);
  for (const char* flags : {"2", "4", "8", "a"}) {
    Write(pi4, flags);
    EXPECT_TRUE(State().throttling->is_slowed) << flags;
    EXPECT_FALSE(State().throttling->is_under_voltage || State().throttling->was_slowed) << flags;
  }
  Write(pi4, "50001\n");
  EXPECT_FALSE(State().throttling->is_slowed);
  EXPECT_TRUE(State().throttling->is_under_voltage);
  EXPECT_TRUE(State().throttling->was_slowed && State().throttling->was_under_voltage);
  Write(pi4, "?\n");
  EXPECT_FALSE(State().throttling);
}

TEST_F(ProcessorStateTest, WhatThePi5sFirmwareSays) {
  Write("sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled", "e0008\n");
  ASSERT_TRUE(State().throttling);
  EXPECT_TRUE(State().throttling->is_slowed && State().throttling->was_slowed);
  EXPECT_FALSE(State().throttling->is_under_voltage || State().throttling->was_under_voltage);
}

TEST_F(ProcessorStateTest, TheHottestSensorOfTheProcessorCounts) {
  WriteZone(0, "battery", "99000\n");
  WriteZone(1, "littlecore-thermal", "41000\n");
  WriteZone(2, "CPU-therm", "57500\n");
  WriteZone(10, "x86_pkg_temp", "52000\n");
  EXPECT_EQ(State().temperature_celsius, 57.5);
}

TEST_F(ProcessorStateTest, TheFirstZoneCountsWhereNoneIsOfTheProcessor) {
  WriteZone(1, "battery", "99000\n");
  WriteZone(0, "soc-thermal", "45000\n");
  EXPECT_EQ(State().temperature_celsius, 45.0);
}

TEST_F(ProcessorStateTest, BelowZeroToo) {
  WriteZone(0, "cpu-thermal", "-5500\n");
  EXPECT_EQ(State().temperature_celsius, -5.5);
}

TEST_F(ProcessorStateTest, WhatIsNoNumberIsPassedOver) {
  WriteZone(0, "cpu-thermal", "\n");
  WriteZone(1, "cpu-thermal", "61000\n");
  Write("sys/class/thermal/thermal_zone2/type", "cpu-thermal\n");
  Write("sys/class/thermal/cooling_device0/temp", "99000\n");
  WriteFrequency(FirstProcessor(true), "<unknown>\n");
  EXPECT_EQ(State().temperature_celsius, 61.0);
  EXPECT_FALSE(State().frequency_hz);
}

TEST_F(ProcessorStateTest, ProcessorsThatMayNotBeUsedDoNotCount) {
  WriteFrequency(FirstProcessor(true), "600000\n");
  WriteFrequency(FirstProcessor(false), "2400000\n");
  EXPECT_EQ(State().frequency_hz, 600'000'000u);
}

}  // namespace
}  // namespace cria::platform
