// Pictures: their numbers are read back, and are where the axes say.

#include "cli/plot/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/plot/axis_scale.h"
#include "support/files.h"
#include "support/svg_reader.h"
#include "support/temporary_directory.h"

namespace cria::cli {
namespace {

using support::ReadSvg;
using support::SvgNumbers;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(AxisTextTest, NumbersAndBytes) {
  const auto number = [](double value) { return AxisText(AxisUnit::kNumber, value); };
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(7), "7");
  EXPECT_EQ(number(131072), "131,072");
  EXPECT_EQ(number(1234567), "1,234,567");
  EXPECT_EQ(number(-2048), "-2,048");
  EXPECT_EQ(number(0.25), "0.25");
  EXPECT_EQ(number(4.5), "4.5");
  EXPECT_EQ(number(12.3456), "12.3");
  EXPECT_EQ(number(123.6), "124");
  EXPECT_EQ(number(0.00123456), "0.00123");
  EXPECT_EQ(AxisText(AxisUnit::kBytes, 812'400'000), "812.4 MB");
  EXPECT_EQ(AxisText(AxisUnit::kBytes, 500'000'000), "500 MB");
  EXPECT_EQ(AxisText(AxisUnit::kBytes, 0), "0 B");
}

TEST(AxisMapTest, LinearTicksAreRoundAndHoldAllValues) {
  const AxisMap map({.begins_at_zero = true}, 3, 87, 400, 0);
  EXPECT_THAT(map.ticks(), ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80, 90));
  EXPECT_EQ(map.Pixel(0), 400);
  EXPECT_EQ(map.Pixel(90), 0);
  EXPECT_EQ(map.Pixel(45), 200);
  const AxisMap small({}, 2.3, 4.9, 0, 100);
  EXPECT_THAT(small.ticks(), ElementsAre(2, 2.5, 3, 3.5, 4, 4.5, 5));
  const AxisMap threads({.is_whole = true}, 1, 4, 0, 300);
  EXPECT_THAT(threads.ticks(), ElementsAre(1, 2, 3, 4));
}

TEST(AxisMapTest, OneValueHasAnAxisToo) {
  for (const AxisScale scale : {AxisScale::kLinear, AxisScale::kLog2}) {
    const AxisMap map({.scale = scale}, 4, 4, 0, 100);
    EXPECT_GE(map.ticks().size(), 2u);
    EXPECT_EQ(map.Pixel(4), 0);
    EXPECT_LT(map.Pixel(8), 100.1);
  }
  const AxisMap zero({}, 0, 0, 0, 100);
  EXPECT_EQ(zero.Pixel(0), 0);
}

TEST(AxisMapTest, LogarithmicTicksArePowersOfTwo) {
  const AxisMap map({.scale = AxisScale::kLog2}, 256, 4096, 0, 400);
  EXPECT_THAT(map.ticks(), ElementsAre(256, 512, 1024, 2048, 4096));
  EXPECT_EQ(map.Pixel(256), 0);
  EXPECT_EQ(map.Pixel(1024), 200);
  EXPECT_LE(AxisMap({.scale = AxisScale::kLog2}, 1, 1 << 24, 0, 400).ticks().size(), 13u);
}

Figure Example() {
  Chart chart = {
      .title = "A <chart> & its \"parts\"",
      .x = {.title = "context (tokens)", .scale = AxisScale::kLog2},
      .y = {.title = "memory", .unit = AxisUnit::kBytes, .begins_at_zero = true},
      .areas = {{.name = "a & b", .points = {{256, 10e6}, {512, 20e6}, {1024, 40e6}}},
                {.name = "c", .points = {{256, 100e6}, {512, 100e6}, {1024, 100e6}}}},
      .lines = {{.name = "<peak>", .points = {{256, 150e6}, {512, 155e6}, {1024, 160e6}}}},
      .levels = {{.name = "a board", .y = 180e6}},
      .mark = Chart::Mark{.name = "-c 512", .x = 512}};
  return {.title = "Title", .subtitle = "Subtitle", .charts = {chart, chart}};
}

TEST(FigureSvgTest, ItsNumbersCanBeReadBack) {
  const SvgNumbers numbers = ReadSvg(FigureSvg(Example()));
  ASSERT_EQ(numbers.series.size(), 6u) << "two charts of three series";
  for (size_t chart = 0; chart < 2; ++chart) {
    std::vector<std::string> names;
    const Chart expected = Example().charts[0];
    for (size_t i = 0; i < 3; ++i) {
      const SvgNumbers::Series& read = numbers.series[3 * chart + i];
      const PlotSeries& series = i < 2 ? expected.areas[i] : expected.lines[0];
      EXPECT_EQ(read.name, series.name);
      ASSERT_EQ(read.points.size(), series.points.size());
      for (size_t point = 0; point < read.points.size(); ++point) {
        EXPECT_EQ(read.points[point].x, series.points[point].x);
        EXPECT_EQ(read.points[point].y, series.points[point].y);
      }
    }
  }
  ASSERT_EQ(numbers.levels.size(), 2u);
  EXPECT_EQ(numbers.levels[0].name, "a board");
  EXPECT_EQ(numbers.levels[0].value, 180e6);
  ASSERT_EQ(numbers.marks.size(), 2u);
  EXPECT_EQ(numbers.marks[0].value, 512);
  for (const char* text :
       {"Title", "Subtitle", "A <chart> & its \"parts\"", "context (tokens)", "memory", "a & b",
        "<peak>", "512", "1,024", "20 MB", "180 MB", "a board: 180 MB", "-c 512"}) {
    EXPECT_THAT(numbers.texts, Contains(text));
  }
}

TEST(FigureSvgTest, EverythingIsWhereTheAxesSay) {
  const SvgNumbers numbers = ReadSvg(FigureSvg(Example()));
  const auto& bottom = numbers.series[0].points;
  const auto& top = numbers.series[1].points;
  const auto& line = numbers.series[2].points;
  const double per_byte = (line[0].cy - line[2].cy) / 10e6;
  const auto y_pixel = [&](double bytes) { return line[0].cy + (150e6 - bytes) * per_byte; };
  const double per_octave = line[1].cx - line[0].cx;
  constexpr double kNear = 0.3;  // Pixels; their hundredths are rounded.
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(bottom[i].cy, y_pixel(bottom[i].y), kNear);
    EXPECT_NEAR(top[i].cy, y_pixel(bottom[i].y + top[i].y), kNear) << "it is stacked";
    EXPECT_NEAR(line[i].cy, y_pixel(line[i].y), kNear);
    EXPECT_NEAR(top[i].cx, line[0].cx + per_octave * std::log2(top[i].x / 256), kNear);
  }
  EXPECT_NEAR(numbers.levels[0].pixel, y_pixel(180e6), kNear);
  EXPECT_NEAR(numbers.marks[0].pixel, line[1].cx, kNear);
  EXPECT_GT(numbers.series[3].points[0].cy, bottom[0].cy) << "the second chart is below";
}

TEST(FigureSvgTest, BarsBeginAtZeroAndStandBelowTheOtherCharts) {
  Figure figure = Example();
  figure.charts[1] = {
      .title = "Bars & more",
      .x = {.title = "nats"},
      .y = {},
      .bars = {{.name = "\"<a>\\n\" at 7", .value = 2.5},
               {.name = "a name of more characters than stand before a bar", .value = 0.5},
               {.name = "nothing", .value = 0.0}},
      .bars_end = 5.0};
  const SvgNumbers numbers = ReadSvg(FigureSvg(figure));
  ASSERT_EQ(numbers.bars.size(), 3u);
  EXPECT_EQ(numbers.series.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(numbers.bars[i].chart, "Bars & more");
    EXPECT_EQ(numbers.bars[i].name, figure.charts[1].bars[i].name);
    EXPECT_EQ(numbers.bars[i].value, figure.charts[1].bars[i].value);
    EXPECT_NEAR(numbers.bars[i].length, 0.4 * numbers.bars[i].value * numbers.bars[0].length, 0.1);
  }
  for (const char* text : {"nats", "Bars & more", "\"<a>\\n\" at 7", "2.5", "0.5", "5",
                           "a name of more characters tha…"}) {
    EXPECT_THAT(numbers.texts, Contains(text));
  }
}

TEST(FigureSvgTest, PointsCanHaveTheirNamesBesideThem) {
  Figure figure = {.title = "", .subtitle = "", .charts = {{.x = {}, .y = {}}}};
  figure.charts[0].lines = {{.name = "left", .points = {{1, 1}}},
                            {.name = "right", .points = {{9, 5}}}};
  const auto count = [&](const char* name) {
    return std::ranges::count(ReadSvg(FigureSvg(figure)).texts, name);
  };
  EXPECT_EQ(count("left"), 1) << "in the legend";
  figure.charts[0].names_points = true;
  // A halo is a text of its own.
  EXPECT_EQ(count("left"), 3);
  EXPECT_EQ(count("right"), 3);
}

TEST(FigureSvgTest, ManyLinesAreToldApartAndTheLegendEnds) {
  Figure figure = {.title = "", .subtitle = "", .charts = {{.x = {}, .y = {}}}};
  for (int i = 0; i < 20; ++i) {
    const double y = i;
    figure.charts[0].lines.push_back(
        {.name = "line " + std::to_string(i), .points = {{1, y}, {2, y}}});
  }
  const std::string svg = FigureSvg(figure);
  const SvgNumbers numbers = ReadSvg(svg);
  EXPECT_EQ(numbers.series.size(), 20u);
  EXPECT_THAT(svg, HasSubstr("class=\"line l0\" d="));
  EXPECT_THAT(svg, HasSubstr("class=\"line l0 again\" d="));
  EXPECT_THAT(numbers.texts, Contains("line 14"));
  EXPECT_THAT(numbers.texts, Contains("and 5 more"));
  EXPECT_THAT(numbers.texts, testing::Not(Contains("line 15")));
}

TEST(FigureSvgTest, HasColoursForLightAndDarkPages) {
  const std::string svg = FigureSvg(Example());
  EXPECT_THAT(svg, HasSubstr("@media(prefers-color-scheme:dark)"));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("href"), std::string::npos);
}

TEST(WriteFigureTest, AFolderThatIsMissingIsAnError) {
  const support::TemporaryDirectory folder;
  const std::string path = folder.path() / "picture.svg";
  ASSERT_TRUE(WriteFigure(Example(), path));
  EXPECT_EQ(support::ReadFile(path), FigureSvg(Example()));
  EXPECT_FALSE(WriteFigure(Example(), folder.path() / "none" / "picture.svg"));
}

}  // namespace
}  // namespace cria::cli
