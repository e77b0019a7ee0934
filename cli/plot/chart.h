#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cria::cli {

enum class AxisScale : uint8_t { kLinear, kLog2 };
// What the numbers of an axis are: "2,048", or bytes such as "812.4 MB".
enum class AxisUnit : uint8_t { kNumber, kBytes };

struct Axis {
  std::string title;  // With its unit, unless the numbers have it.
  AxisScale scale = AxisScale::kLinear;
  AxisUnit unit = AxisUnit::kNumber;
  // Whether the axis begins at 0; otherwise at the smallest value. Never with kLog2.
  bool begins_at_zero = false;
  // Whether only whole numbers have labels. Without effect with kLog2.
  bool is_whole = false;
};

struct PlotPoint {
  double x = 0.0;
  double y = 0.0;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // By growing x.
};

struct Bar {
  std::string name;
  double value = 0.0;  // Not negative.
};

// One picture of numbers: areas that are stacked, and lines; or bars alone.
struct Chart {
  // A horizontal line at a value.
  struct Level {
    std::string name;
    double y = 0.0;
  };
  // A vertical line at a value.
  struct Mark {
    std::string name;
    double x = 0.0;
  };

  std::string title;
  Axis x, y;
  // The first one is at the bottom. All have the same x; y is the height of the area.
  std::vector<PlotSeries> areas;
  std::vector<PlotSeries> lines;
  // Whether the name of each line stands at its last point, too.
  bool names_points = false;
  // The first one is at the top. The axis of their numbers is x, from 0 to bars_end or the largest.
  std::vector<Bar> bars;
  double bars_end = 0.0;
  size_t bars_color = 0;  // They have the color of a line with this index in another chart.
  std::vector<Level> levels;
  std::optional<Mark> mark;
};

// Charts one below another, with a title above them.
struct Figure {
  std::string title;
  std::string subtitle;
  std::vector<Chart> charts;
};

}  // namespace cria::cli
