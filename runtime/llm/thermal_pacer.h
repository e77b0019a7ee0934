#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/temperature_sensor.h"
#include "core/thread_pool.h"
#include "cria/error.h"

namespace cria {

// How hot the processor may become.
struct ThermalOptions {
  static constexpr double kMinCelsius = 30.0;
  static constexpr double kMaxCelsius = 125.0;

  // The clock, and what waits; tests have others. `sleep` may return early.
  struct Time {
    using Clock = std::chrono::steady_clock;
    Clock::time_point (*now)() = Clock::now;
    void (*sleep)(Clock::duration) = Sleep;

    static void Sleep(Clock::duration duration);
  };

  // From a few degrees below this on, computing becomes slower; 0: never.
  double max_celsius = 0.0;
  // Told once when that begins, and once if the sensors fail, while the model is used and by any
  // thread that uses it; may be null.
  std::function<void(std::string_view sentence)> on_slowing;
  std::string sensor_root;  // The argument of TemperatureSensor::Open.
  Time time;

  bool has_limit() const { return max_celsius != 0.0; }
  // Fails with kUsage if the limit is outside kMinCelsius to kMaxCelsius, and not 0.
  Status Validate() const;
};

// Lets a model compute more slowly as its processor comes near a temperature, before the board
// reduces its clock by itself: with fewer threads, and with pauses between steps. It changes no
// result.
//
// With the level x, which grows from 0 at kBandCelsius below the limit to 1 at the limit, the model
// computes for the share 1 - x (1 - kMinShare) of the time, with up to half of the threads fewer.
class ThermalPacer {
 public:
  using Clock = ThermalOptions::Time::Clock;
  using Pools = std::array<const ThreadPool*, 2>;

  static constexpr double kBandCelsius = 5.0;
  static constexpr double kMinShare = 0.25;
  // How often the sensors are read.
  static constexpr Clock::duration kReadingPeriod = std::chrono::seconds(1);
  // If the sensors fail for so long, the last temperature is not used any more.
  static constexpr Clock::duration kForgottenAfter = std::chrono::seconds(10);
  // How often a pause looks whether it should end.
  static constexpr Clock::duration kLookPeriod = std::chrono::milliseconds(10);

  struct Figures {
    std::optional<double> celsius;  // The last reading.
    bool is_slowing = false;
    size_t num_threads = 0;  // How many of the first pool may compute now.
    double paused_seconds = 0.0;
  };

  // `options` have a limit. The pools may be one; they must outlive the pacer.
  ThermalPacer(ThermalOptions options, platform::TemperatureSensor sensor, const Pools& pools);

  double max_celsius() const { return options_.max_celsius; }

  // Waits as long as the heat demands since the last step, and reads the sensors if it is time. The
  // pause ends when `is_cancelled` returns true. Allocates nothing. One step at a time.
  void BeginStep(const std::function<bool()>& is_cancelled);
  // A step has ended, which took `time`.
  void EndStep(Clock::duration time);

  // Any thread.
  Figures figures() const;

 private:
  void ReadSensors(Clock::time_point now);
  void SetLevel(double level);
  void TellOnce(bool& is_told, const std::string& sentence) const;
  // Sets the threads that may compute, and returns their number.
  static size_t Limit(const ThreadPool& pool, double level);

  const ThermalOptions options_;
  const platform::TemperatureSensor sensor_;
  const Pools pools_;
  const std::string slowing_sentence_, lost_sentence_;
  bool has_told_slowing_ = false;
  bool has_told_lost_ = false;
  double level_ = 0.0;
  Clock::time_point next_reading_ = Clock::time_point::min();
  Clock::time_point last_reading_;
  Clock::time_point step_end_;
  Clock::duration step_time_{0};
  // Also read by other threads.
  std::atomic<double> celsius_;  // NaN: not known.
  std::atomic<size_t> num_threads_;
  std::atomic<double> paused_seconds_ = 0.0;
};

}  // namespace cria
