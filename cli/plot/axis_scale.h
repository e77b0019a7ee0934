#pragma once

#include <string>
#include <vector>

#include "cli/plot/chart.h"

namespace cria::cli {

// Where the numbers of an axis are in a picture.
class AxisMap {
 public:
  // Shows the numbers from `first` to `last`, with some room, at the pixels from `begin` to `end`,
  // which may be less than `begin`.
  AxisMap(const Axis& axis, double first, double last, double begin, double end);

  double Pixel(double value) const;
  // The numbers that have a label.
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  AxisScale scale_;
  double low_, high_;  // Logarithms of base 2 if the scale is kLog2.
  double begin_, end_;
  std::vector<double> ticks_;
};

// "2,048", "0.25", "812.4 MB".
std::string AxisText(AxisUnit unit, double value);

}  // namespace cria::cli
