#include "cli/plot/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "cli/plot/axis_scale.h"
#include "cli/plot/bar_chart.h"
#include "cli/plot/svg_text.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "core/output_file.h"

namespace cria::cli {
namespace {

// Sizes and places in the picture, in pixels.
constexpr double kWidth = 860.0;
constexpr double kHeadHeight = 64.0;
constexpr double kChartHeight = 430.0;
constexpr double kBottom = 370.0;
constexpr double kLegend = 652.0;
constexpr double kLegendRow = 22.0;
constexpr size_t kLegendCharacters = 27;
// So many rows are beside a chart.
constexpr size_t kMaxLegendRows = 16;

struct Color {
  const char* light;
  const char* dark;
};
// Colours that are told apart with any kind of colour blindness (Okabe and Ito, "Color universal
// design", 2008), and lighter ones for a dark page.
constexpr std::array<Color, kNumChartColors> kColors = {{{"#0072b2", "#4aa3df"},
                                                         {"#e69f00", "#f0b840"},
                                                         {"#009e73", "#2fc296"},
                                                         {"#cc79a7", "#e39cc4"},
                                                         {"#56b4e9", "#8fd0f5"},
                                                         {"#d55e00", "#f0803c"},
                                                         {"#8c6bb1", "#b79ddb"},
                                                         {"#7f7f7f", "#a8a8a8"}}};

std::string Style() {
  const auto colors = [](const char* page, const char* ink, const char* soft, const char* grid,
                         bool is_dark) {
    std::string rules = Format(
        ".page{{fill:{0}}}.ink{{fill:{1}}}.soft{{fill:{2}}}.grid{{stroke:{3}}}"
        ".frame{{stroke:{2}}}.rule{{stroke:{1}}}.halo{{fill:{0};stroke:{0}}}",
        page, ink, soft, grid);
    for (size_t i = 0; i < kNumChartColors; ++i) {
      const char* const color = is_dark ? kColors[i].dark : kColors[i].light;
      rules += Format(".a{0}{{fill:{1}}}.l{0}{{stroke:{1}}}", i, color);
    }
    return rules;
  };
  return "text{font:13px system-ui,sans-serif}.title{font-size:19px;font-weight:600}"
         ".heading{font-size:15px;font-weight:600}.grid,.frame{stroke-width:1}"
         ".rule{stroke-width:1.5;stroke-dasharray:6 4}.line{fill:none;stroke-width:2.5}"
         ".halo{stroke-width:4;stroke-linejoin:round}"
         ".again{stroke-dasharray:3 4}.hidden{opacity:0}.hidden:hover{opacity:1}" +
         colors("#ffffff", "#1f2328", "#59636e", "#d9dee3", false) +
         "@media(prefers-color-scheme:dark){" +
         colors("#0d1117", "#e6edf3", "#9da7b3", "#2b323b", true) + "}";
}

// The smallest and largest numbers of a chart.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Draws one chart whose upper edge is at `top`.
class ChartDrawer {
 public:
  ChartDrawer(const Chart& chart, double top, SvgText& out)
      : chart_(chart), top_(top), out_(out), x_(XMap()), y_(YMap()) {}

  void Draw() {
    out_.Text(kChartLeft, top_ + 16.0, "heading ink", "start", chart_.title);
    DrawGrid();
    for (size_t i = 0; i < chart_.areas.size(); ++i) DrawArea(i);
    for (size_t i = 0; i < chart_.lines.size(); ++i) DrawLine(i);
    for (const Chart::Level& level : chart_.levels) DrawLevel(level);
    if (chart_.mark) DrawMark(*chart_.mark);
    DrawLegend();
  }

 private:
  AxisMap XMap() const {
    Range range;
    for (const std::vector<PlotSeries>* const all : {&chart_.areas, &chart_.lines}) {
      for (const PlotSeries& series : *all) {
        for (const PlotPoint& point : series.points) range.Add(point.x);
      }
    }
    return {chart_.x, range.low, range.high, kChartLeft, kChartRight};
  }
  AxisMap YMap() const {
    Range range;
    for (size_t i = 0; !chart_.areas.empty() && i < chart_.areas[0].points.size(); ++i) {
      range.Add(0.0);
      range.Add(Stacked(chart_.areas.size(), i));
    }
    for (const PlotSeries& series : chart_.lines) {
      for (const PlotPoint& point : series.points) range.Add(point.y);
    }
    for (const Chart::Level& level : chart_.levels) range.Add(level.y);
    return {chart_.y, range.low, range.high, top_ + kBottom, top_ + kChartTop};
  }
  // The sum of point `i` over the first `count` areas.
  double Stacked(size_t count, size_t i) const {
    double sum = 0.0;
    for (size_t area = 0; area < count; ++area) sum += chart_.areas[area].points[i].y;
    return sum;
  }

  void DrawGrid() {
    for (const double tick : y_.ticks()) {
      const double y = y_.Pixel(tick);
      out_.Line(kChartLeft, y, kChartRight, y, "grid");
      out_.Text(kChartLeft - 8.0, y + 4.5, "soft", "end", AxisText(chart_.y.unit, tick));
    }
    const double bottom = top_ + kBottom;
    for (const double tick : x_.ticks()) {
      const double x = x_.Pixel(tick);
      out_.Line(x, bottom, x, bottom + 5.0, "frame");
      out_.Text(x, bottom + 20.0, "soft", "middle", AxisText(chart_.x.unit, tick));
    }
    out_.Line(kChartLeft, bottom, kChartRight, bottom, "frame");
    out_.Text((kChartLeft + kChartRight) / 2.0, bottom + 42.0, "ink", "middle", chart_.x.title);
    const double middle = top_ + (kChartTop + kBottom) / 2.0;
    out_.svg += Format(
        "<text transform=\"translate(16 {}) rotate(-90)\" class=\"ink\" text-anchor=\"middle\">"
        "{}</text>\n",
        Pixels(middle), Escaped(chart_.y.title));
  }

  void BeginSeries(const PlotSeries& series) {
    out_.svg += Format("<g class=\"series\" data-name=\"{}\">\n", Escaped(series.name));
  }
  void DrawPoint(const PlotSeries& series, const PlotPoint& point, double y, size_t color,
                 const char* style) {
    out_.svg += Format(
        "<circle cx=\"{}\" cy=\"{}\" r=\"4\" class=\"a{}{}\" data-x=\"{}\" data-y=\"{}\">"
        "<title>{}: {} at {}</title></circle>\n",
        Pixels(x_.Pixel(point.x)), Pixels(y_.Pixel(y)), color, style, point.x, point.y,
        Escaped(series.name), AxisText(chart_.y.unit, point.y), AxisText(chart_.x.unit, point.x));
  }

  void DrawArea(size_t area) {
    const PlotSeries& series = chart_.areas[area];
    BeginSeries(series);
    std::string path;
    for (size_t i = 0; i < series.points.size(); ++i) {
      path += Format("{}{} {}", i == 0 ? "M" : "L", Pixels(x_.Pixel(series.points[i].x)),
                     Pixels(y_.Pixel(Stacked(area + 1, i))));
    }
    for (size_t i = series.points.size(); i-- > 0;) {
      path += Format("L{} {}", Pixels(x_.Pixel(series.points[i].x)),
                     Pixels(y_.Pixel(Stacked(area, i))));
    }
    const size_t color = area % kNumChartColors;
    out_.svg += Format("<path class=\"a{}\" d=\"{}Z\"><title>{}</title></path>\n", color, path,
                       Escaped(series.name));
    for (size_t i = 0; i < series.points.size(); ++i) {
      DrawPoint(series, series.points[i], Stacked(area + 1, i), color, " hidden");
    }
    out_.svg += "</g>\n";
  }

  void DrawLine(size_t index) {
    const PlotSeries& series = chart_.lines[index];
    const size_t color = LineColor(index);
    BeginSeries(series);
    std::string path;
    for (const PlotPoint& point : series.points) {
      path += Format("{}{} {}", path.empty() ? "M" : "L", Pixels(x_.Pixel(point.x)),
                     Pixels(y_.Pixel(point.y)));
    }
    out_.svg += Format("<path class=\"line {}\" d=\"{}\"/>\n", LineStyle(index), path);
    for (const PlotPoint& point : series.points) DrawPoint(series, point, point.y, color, "");
    out_.svg += "</g>\n";
    if (chart_.names_points) NamePoint(series.name, series.points.back());
  }
  void NamePoint(std::string_view name, const PlotPoint& point) {
    const double x = x_.Pixel(point.x);
    const bool is_left = x < (kChartLeft + kChartRight) / 2.0;
    out_.TextOver(is_left ? x + 9.0 : x - 9.0, y_.Pixel(point.y) + 4.5, is_left ? "start" : "end",
                  Shortened(name, kLegendCharacters));
  }
  size_t LineColor(size_t index) const { return (chart_.areas.size() + index) % kNumChartColors; }
  // Lines are dotted if there are no more colours.
  std::string LineStyle(size_t index) const {
    const bool is_again = chart_.areas.size() + index >= kNumChartColors;
    return Format("l{}{}", LineColor(index), is_again ? " again" : "");
  }

  void DrawLevel(const Chart::Level& level) {
    const double y = y_.Pixel(level.y);
    out_.svg += Format("<g class=\"level\" data-name=\"{}\" data-y=\"{}\">\n", Escaped(level.name),
                       level.y);
    out_.Line(kChartLeft, y, kChartRight, y, "rule");
    out_.TextOver(kChartLeft + 8.0, y - 6.0, "start",
                  Format("{}: {}", level.name, AxisText(chart_.y.unit, level.y)));
    out_.svg += "</g>\n";
  }

  void DrawMark(const Chart::Mark& mark) {
    const double x = x_.Pixel(mark.x);
    out_.svg +=
        Format("<g class=\"mark\" data-name=\"{}\" data-x=\"{}\">\n", Escaped(mark.name), mark.x);
    out_.Line(x, top_ + kChartTop, x, top_ + kBottom, "rule");
    const bool is_left = x < (kChartLeft + kChartRight) / 2.0;
    out_.TextOver(is_left ? x + 6.0 : x - 6.0, top_ + kBottom - 8.0, is_left ? "start" : "end",
                  mark.name);
    out_.svg += "</g>\n";
  }

  // In the order of the picture: the highest area is above the others.
  void DrawLegend() {
    double y = top_ + kChartTop + 8.0;
    const size_t num_rows = chart_.lines.size() + chart_.areas.size();
    size_t row = 0;
    const auto add = [&](const std::string& name, const std::string& swatch) {
      if (++row > kMaxLegendRows) return;
      if (row == kMaxLegendRows && num_rows > row) {
        out_.Text(kLegend + 24.0, y + 4.5, "soft", "start",
                  Format("and {} more", num_rows - row + 1));
        return;
      }
      out_.svg += swatch;
      out_.Text(kLegend + 24.0, y + 4.5, "ink", "start", Shortened(name, kLegendCharacters));
      y += kLegendRow;
    };
    for (size_t i = 0; i < chart_.lines.size(); ++i) {
      add(chart_.lines[i].name,
          Format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"line {}\"/>\n",
                 Pixels(kLegend), Pixels(y), Pixels(kLegend + 16.0), Pixels(y), LineStyle(i)));
    }
    for (size_t i = chart_.areas.size(); i-- > 0;) {
      add(chart_.areas[i].name,
          Format("<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"14\" rx=\"2\" class=\"a{}\"/>\n",
                 Pixels(kLegend), Pixels(y - 7.0), i % kNumChartColors));
    }
  }

  const Chart& chart_;
  const double top_;
  SvgText& out_;
  const AxisMap x_, y_;
};

double HeightOf(const Chart& chart) {
  return chart.bars.empty() ? kChartHeight : BarChartHeight(chart);
}

}  // namespace

std::string FigureSvg(const Figure& figure) {
  double height = kHeadHeight;
  for (const Chart& chart : figure.charts) height += HeightOf(chart);
  SvgText out;
  out.svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" class=\"page\"/>\n",
      Pixels(kWidth), Pixels(height), Escaped(figure.title), Style());
  out.Text(kChartLeft, 30.0, "title ink", "start", figure.title);
  out.Text(kChartLeft, 50.0, "soft", "start", figure.subtitle);
  double top = kHeadHeight;
  for (const Chart& chart : figure.charts) {
    if (chart.bars.empty()) {
      ChartDrawer(chart, top, out).Draw();
    } else {
      DrawBarChart(chart, top, out);
    }
    top += HeightOf(chart);
  }
  return out.svg + "</svg>\n";
}

Status WriteFigure(const Figure& figure, const std::string& path) {
  const std::string svg = FigureSvg(figure);
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, svg.size()));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(svg))));
  return file.Commit();
}

}  // namespace cria::cli
