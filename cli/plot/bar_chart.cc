#include "cli/plot/bar_chart.h"

#include <algorithm>

#include "cli/plot/axis_scale.h"
#include "cli/terminal/printable.h"
#include "core/format.h"

namespace cria::cli {
namespace {

constexpr double kRowHeight = 24.0;
constexpr double kBarHeight = 16.0;
// The axis, with its title and the room below it.
constexpr double kFootHeight = 66.0;
// Where bars begin: names stand before it.
constexpr double kBarLeft = 300.0;
constexpr size_t kNameCharacters = 30;

}  // namespace

double BarChartHeight(const Chart& chart) {
  return kChartTop + kRowHeight * static_cast<double>(chart.bars.size()) + kFootHeight;
}

void DrawBarChart(const Chart& chart, double top, SvgText& out) {
  out.Text(kChartLeft, top + 16.0, "heading ink", "start", chart.title);
  const double first_row = top + kChartTop;
  const double bottom = first_row + kRowHeight * static_cast<double>(chart.bars.size());
  double largest = 0.0;
  for (const Bar& bar : chart.bars) largest = std::max(largest, bar.value);
  const Axis axis = {.title = chart.x.title, .unit = chart.x.unit, .begins_at_zero = true};
  const AxisMap map(axis, 0.0, std::max(largest, chart.bars_end), kBarLeft, kChartRight);
  for (const double tick : map.ticks()) {
    const double x = map.Pixel(tick);
    out.Line(x, first_row, x, bottom + 5.0, "grid");
    out.Text(x, bottom + 20.0, "soft", "middle", AxisText(axis.unit, tick));
  }
  out.Line(kBarLeft, first_row, kBarLeft, bottom, "frame");
  out.Text((kBarLeft + kChartRight) / 2.0, bottom + 42.0, "ink", "middle", axis.title);

  out.svg += Format("<g class=\"bars\" data-name=\"{}\">\n", Escaped(chart.title));
  double y = first_row + (kRowHeight - kBarHeight) / 2.0;
  for (const Bar& bar : chart.bars) {
    const double end = map.Pixel(bar.value);
    const std::string number = AxisText(axis.unit, bar.value);
    out.svg += Format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"a{}\" data-name=\"{}\" "
        "data-x=\"{}\"><title>{}: {}</title></rect>\n",
        Pixels(kBarLeft), Pixels(y), Pixels(end - kBarLeft), Pixels(kBarHeight),
        chart.bars_color % kNumChartColors, Escaped(bar.name), bar.value, Escaped(bar.name),
        number);
    const double text_y = y + kBarHeight - 3.5;
    out.Text(kBarLeft - 8.0, text_y, "ink", "end", Shortened(bar.name, kNameCharacters));
    out.TextOver(end + 6.0, text_y, "start", number);
    y += kRowHeight;
  }
  out.svg += "</g>\n";
}

}  // namespace cria::cli
