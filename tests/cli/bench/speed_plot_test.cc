// The picture of cria bench: its numbers are those of the rows.

#include "cli/bench/speed_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cria::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::ordered_json;

struct Test {
  int prompt = 0;
  int generated = 0;
  int depth = 0;
  int sequences = 1;
  int threads = 4;
  double speed = 0.0;  // Tokens/s.
};

std::vector<Json> Rows(const std::vector<Test>& tests) {
  std::vector<Json> rows;
  for (const Test& test : tests) {
    rows.push_back({{"cpu_info", "A board"},
                    {"model_type", "Llama 3.2 1B qb4w"},
                    {"type_k", "int8"},
                    {"n_prompt", test.prompt},
                    {"n_gen", test.generated},
                    {"n_depth", test.depth},
                    {"n_parallel", test.sequences},
                    {"n_threads", test.threads},
                    {"n_threads_batch", test.threads},
                    {"avg_ts", test.speed}});
  }
  return rows;
}

std::vector<std::pair<double, double>> Points(const PlotSeries& series) {
  std::vector<std::pair<double, double>> points;
  for (const PlotPoint& point : series.points) points.emplace_back(point.x, point.y);
  return points;
}

std::vector<std::string> Names(const Chart& chart) {
  std::vector<std::string> names;
  for (const PlotSeries& line : chart.lines) names.push_back(line.name);
  return names;
}

TEST(SpeedPlotTest, OverDepthPromptsAndGeneratingAreApart) {
  const Figure figure = PlotSpeed(Rows({{.prompt = 512, .depth = 0, .speed = 200},
                                        {.generated = 128, .depth = 0, .speed = 20},
                                        {.prompt = 512, .depth = 2048, .speed = 150},
                                        {.generated = 128, .depth = 2048, .speed = 18}}));
  EXPECT_THAT(figure.title, HasSubstr("Llama 3.2 1B"));
  EXPECT_THAT(figure.subtitle, HasSubstr("A board"));
  ASSERT_EQ(figure.charts.size(), 2u);
  EXPECT_EQ(figure.charts[0].title, "Prompts: speed over depth");
  EXPECT_THAT(Names(figure.charts[0]), ElementsAre("prompt"));
  EXPECT_THAT(Points(figure.charts[0].lines[0]),
              ElementsAre(std::pair(0.0, 200.0), std::pair(2048.0, 150.0)));
  EXPECT_EQ(figure.charts[1].title, "Generating: speed over depth");
  EXPECT_THAT(Points(figure.charts[1].lines[0]),
              ElementsAre(std::pair(0.0, 20.0), std::pair(2048.0, 18.0)));
}

TEST(SpeedPlotTest, OverThreadsWithALineForEachDepth) {
  const Figure figure =
      PlotSpeed(Rows({{.generated = 128, .depth = 0, .threads = 4, .speed = 20},
                      {.generated = 128, .depth = 2048, .threads = 4, .speed = 18},
                      {.generated = 128, .depth = 0, .threads = 1, .speed = 8},
                      {.generated = 128, .depth = 2048, .threads = 1, .speed = 7}}));
  ASSERT_EQ(figure.charts.size(), 2u);
  EXPECT_THAT(Names(figure.charts[0]), ElementsAre("4 threads", "1 thread"));
  EXPECT_EQ(figure.charts[1].title, "Generating: speed over threads");
  EXPECT_THAT(Names(figure.charts[1]), ElementsAre("depth 0", "depth 2,048"));
  EXPECT_THAT(Points(figure.charts[1].lines[1]),
              ElementsAre(std::pair(1.0, 7.0), std::pair(4.0, 18.0)));
}

TEST(SpeedPlotTest, RowsAreTokensOfAPromptOrSequences) {
  const Figure figure = PlotSpeed(Rows({{.prompt = 32, .speed = 90},
                                        {.prompt = 512, .speed = 200},
                                        {.generated = 64, .sequences = 1, .speed = 20},
                                        {.generated = 64, .sequences = 4, .speed = 60}}));
  ASSERT_EQ(figure.charts.size(), 2u);
  EXPECT_EQ(figure.charts[0].title, "Prompts: speed over rows");
  EXPECT_THAT(Points(figure.charts[0].lines[0]),
              ElementsAre(std::pair(32.0, 90.0), std::pair(512.0, 200.0)));
  EXPECT_THAT(Points(figure.charts[1].lines[0]),
              ElementsAre(std::pair(1.0, 20.0), std::pair(4.0, 60.0)));
}

TEST(SpeedPlotTest, WhatDoesNotVaryIsNoChart) {
  EXPECT_THAT(PlotSpeed(Rows({{.prompt = 512, .speed = 200}})).charts, IsEmpty());
  EXPECT_THAT(PlotSpeed({}).charts, IsEmpty());
  SpeedOptions options;
  const Status refused = CheckPlots(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  options.depths = {0, 128};
  EXPECT_TRUE(CheckPlots(options));
}

}  // namespace
}  // namespace cria::cli
