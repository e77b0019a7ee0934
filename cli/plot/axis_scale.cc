#include "cli/plot/axis_scale.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/format.h"
#include "core/format_bytes.h"

namespace cria::cli {
namespace {

// About so many numbers of an axis have labels, at most twice as many.
constexpr double kWantedTicks = 5.0;

// The largest of 1, 2 and 5 with any power of ten that is at most `wanted`.
double RoundStep(double wanted) {
  const double power = std::pow(10.0, std::floor(std::log10(wanted)));
  for (const double factor : {5.0, 2.0}) {
    if (factor * power <= wanted * (1.0 + 1e-9)) return factor * power;
  }
  return power;
}

std::string WithCommas(const std::string& digits) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

AxisMap::AxisMap(const Axis& axis, double first, double last, double begin, double end)
    : scale_(axis.scale), begin_(begin), end_(end) {
  if (scale_ == AxisScale::kLog2) {
    low_ = std::log2(first);
    high_ = std::max(std::log2(last), low_ + 1.0);
    const double step = std::max(1.0, std::ceil((high_ - low_) / (2.0 * kWantedTicks)));
    const double first_tick = std::ceil(low_ - 1e-9);
    const auto num_steps = static_cast<int>(std::floor((high_ + 1e-9 - first_tick) / step));
    for (int i = 0; i <= num_steps; ++i) ticks_.push_back(std::exp2(first_tick + i * step));
    return;
  }
  low_ = axis.begins_at_zero ? std::min(first, 0.0) : first;
  high_ = last > low_ ? last : low_ + std::max(1.0, std::abs(low_));
  const double rounded = RoundStep((high_ - low_) / kWantedTicks);
  const double step = axis.is_whole ? std::max(rounded, 1.0) : rounded;
  low_ = std::floor(low_ / step + 1e-9) * step;
  high_ = std::ceil(high_ / step - 1e-9) * step;
  const auto num_steps = static_cast<int>(std::round((high_ - low_) / step));
  for (int i = 0; i <= num_steps; ++i) ticks_.push_back(low_ + i * step);
}

double AxisMap::Pixel(double value) const {
  const double position = scale_ == AxisScale::kLog2 ? std::log2(value) : value;
  return begin_ + (position - low_) / (high_ - low_) * (end_ - begin_);
}

std::string AxisText(AxisUnit unit, double value) {
  if (unit == AxisUnit::kBytes) {
    std::string text = FormatBytes(static_cast<uint64_t>(std::max(value, 0.0)));
    const size_t zero = text.find(".0 ");
    if (zero != std::string::npos) text.erase(zero, 2);
    return text;
  }
  const double rounded = std::round(value);
  if (std::abs(value) >= 100.0 || std::abs(value - rounded) < 1e-9 * std::abs(value)) {
    const std::string digits = Format("{}", static_cast<int64_t>(std::abs(rounded)));
    return (rounded < 0.0 ? "-" : "") + WithCommas(digits);
  }
  // Three digits that count, without zeros behind the last one.
  const int exponent = value == 0.0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double scale = std::pow(10.0, 2 - exponent);
  return Format("{}", std::round(value * scale) / scale);
}

}  // namespace cria::cli
