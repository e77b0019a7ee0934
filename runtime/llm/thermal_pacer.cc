#include "llm/thermal_pacer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "core/format.h"

namespace cria {

void ThermalOptions::Time::Sleep(Clock::duration duration) {
  std::this_thread::sleep_for(duration);
}

Status ThermalOptions::Validate() const {
  if (!has_limit() || (max_celsius >= kMinCelsius && max_celsius <= kMaxCelsius)) return {};
  return Fail(ErrorCode::kUsage,
              Format("a limit of {} °C for the processor's temperature is outside {} to {}",
                     max_celsius, kMinCelsius, kMaxCelsius));
}

ThermalPacer::ThermalPacer(ThermalOptions options, platform::TemperatureSensor sensor,
                           const Pools& pools)
    : options_(std::move(options)),
      sensor_(std::move(sensor)),
      pools_(pools),
      slowing_sentence_(
          Format("the processor is less than {} °C below the limit of {} °C: while that lasts, "
                 "fewer threads compute, and they pause between tokens",
                 kBandCelsius, options_.max_celsius)),
      lost_sentence_(
          "the processor's temperature cannot be read any more: its limit has no effect "
          "until it can"),
      celsius_(std::numeric_limits<double>::quiet_NaN()),
      num_threads_(pools[0]->num_threads()) {}

void ThermalPacer::BeginStep(const std::function<bool()>& is_cancelled) {
  while (true) {
    const Clock::time_point now = options_.time.now();
    if (now >= next_reading_) ReadSensors(now);
    const double share = 1.0 - level_ * (1.0 - kMinShare);
    const auto pause = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double, Clock::period>(step_time_) * (1.0 / share - 1.0));
    const Clock::duration left = step_end_ + pause - now;
    if (left <= Clock::duration::zero() || is_cancelled()) return;
    options_.time.sleep(std::min(left, kLookPeriod));
    const std::chrono::duration<double> slept = options_.time.now() - now;
    paused_seconds_.store(paused_seconds_.load(std::memory_order_relaxed) + slept.count(),
                          std::memory_order_relaxed);
  }
}

void ThermalPacer::EndStep(Clock::duration time) {
  step_end_ = options_.time.now();
  step_time_ = time;
}

void ThermalPacer::ReadSensors(Clock::time_point now) {
  next_reading_ = now + kReadingPeriod;
  const std::optional<double> celsius = sensor_.ReadCelsius();
  if (celsius) {
    last_reading_ = now;
    celsius_.store(*celsius, std::memory_order_relaxed);
    const double begin = options_.max_celsius - kBandCelsius;
    SetLevel(std::clamp((*celsius - begin) / kBandCelsius, 0.0, 1.0));
  } else if (now - last_reading_ >= kForgottenAfter) {
    celsius_.store(std::numeric_limits<double>::quiet_NaN(), std::memory_order_relaxed);
    SetLevel(0.0);
    TellOnce(has_told_lost_, lost_sentence_);
  }
}

void ThermalPacer::SetLevel(double level) {
  level_ = level;
  num_threads_.store(Limit(*pools_[0], level), std::memory_order_relaxed);
  Limit(*pools_[1], level);
  if (level > 0.0) TellOnce(has_told_slowing_, slowing_sentence_);
}

size_t ThermalPacer::Limit(const ThreadPool& pool, double level) {
  const size_t half = pool.num_threads() / 2;
  const auto fewer = static_cast<size_t>(std::ceil(level * static_cast<double>(half)));
  const size_t num_threads = pool.num_threads() - fewer;
  pool.LimitThreads(num_threads);
  return num_threads;
}

void ThermalPacer::TellOnce(bool& is_told, const std::string& sentence) const {
  if (std::exchange(is_told, true) || !options_.on_slowing) return;
  options_.on_slowing(sentence);
}

ThermalPacer::Figures ThermalPacer::figures() const {
  Figures figures = {.num_threads = num_threads_.load(std::memory_order_relaxed),
                     .paused_seconds = paused_seconds_.load(std::memory_order_relaxed)};
  const double celsius = celsius_.load(std::memory_order_relaxed);
  if (!std::isnan(celsius)) figures.celsius = celsius;
  figures.is_slowing = figures.celsius && *figures.celsius > options_.max_celsius - kBandCelsius;
  return figures;
}

}  // namespace cria
