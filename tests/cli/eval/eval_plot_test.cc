// The picture of `cria eval --plot`, without a model: its numbers are those it was given.

#include "cli/eval/eval_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/plot/svg.h"
#include "llm/memory_plan_fixture.h"
#include "support/svg_reader.h"

namespace cria::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;

ComparedModel Compared(std::string name, double bits, double divergence) {
  ComparedModel model = {
      .name = std::move(name),
      .bits_per_weight = bits,
      .summary = {.num_predictions = 1234},
      .far_tokens = {{.position = 7, .text = "\" <&>\\n\"", .divergence = 3.0 * divergence},
                     {.position = 2, .text = "\"b\"", .divergence = 2.0 * divergence}}};
  model.summary.base =
      BaseSummary{.divergence = {.mean = divergence}, .largest_divergence = 3.0 * divergence};
  return model;
}

TEST(EvalPlotTest, EachModelIsAPointAndItsWorstTokensAreBars) {
  const std::vector<ComparedModel> models = {Compared("a & b.cria", 4.5, 0.25),
                                             Compared("c.cria", 8.5, 0.125)};
  const support::SvgNumbers read = support::ReadSvg(FigureSvg(PlotEvaluation(models, "f32.cria")));
  ASSERT_EQ(read.series.size(), 2u);
  ASSERT_EQ(read.bars.size(), 4u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.series[i].name, models[i].name);
    ASSERT_EQ(read.series[i].points.size(), 1u);
    EXPECT_EQ(read.series[i].points[0].x, models[i].bits_per_weight);
    EXPECT_EQ(read.series[i].points[0].y, models[i].summary.base->divergence.mean);
    for (size_t bar = 0; bar < 2; ++bar) {
      EXPECT_EQ(read.bars[2 * i + bar].chart, "Worst tokens of " + models[i].name);
      EXPECT_EQ(read.bars[2 * i + bar].value, models[i].far_tokens[bar].divergence);
    }
  }
  EXPECT_EQ(read.bars[0].name, "\" <&>\\n\" at 7");
  // Bars of all models have the same scale.
  EXPECT_NEAR(read.bars[2].length, read.bars[0].length / 2.0, 0.1);
  EXPECT_THAT(read.texts, Contains("Divergence from f32.cria"));
  EXPECT_THAT(read.texts, Contains("0")) << "the axis begins at 0";
}

TEST(EvalPlotTest, DivergencesOfDifferentMagnitudesHaveALogarithmicAxis) {
  std::vector<ComparedModel> models = {Compared("a", 2.5, 1.0), Compared("b", 8.5, 1.0 / 1024)};
  EXPECT_EQ(PlotEvaluation(models, "base").charts[0].y.scale, AxisScale::kLog2);
  // A model that does not differ is at 0.
  models.push_back(Compared("c", 32.0, 0.0));
  const Figure figure = PlotEvaluation(models, "base");
  EXPECT_EQ(figure.charts[0].y.scale, AxisScale::kLinear);
  EXPECT_TRUE(figure.charts[0].y.begins_at_zero);
}

TEST(EvalPlotTest, BitsAreThoseOfTheMatricesOfProducts) {
  ModelOutline model;
  EXPECT_EQ(BitsPerWeight(model), 0.0);
  model.embedding = MakeTensorLayout(
      {.role = TensorRole::kEmbedTokens, .output_channels = 4096, .input_channels = 64},
      Scheme::kF32, 32);
  model.matrices = {MakeTensorLayout(
      {.role = TensorRole::kOProj, .output_channels = 32, .input_channels = 64}, Scheme::kF32, 32)};
  EXPECT_EQ(BitsPerWeight(model), 32.0);
  // A row of int8 has a scale of 4 bytes: 64 + 4 bytes for 64 weights.
  model.matrices[0] = MakeTensorLayout(
      {.role = TensorRole::kOProj, .output_channels = 32, .input_channels = 64}, Scheme::kQc8w, 32);
  EXPECT_EQ(BitsPerWeight(model), 8.5);
  model.matrices.push_back(MakeTensorLayout(
      {.role = TensorRole::kOProj, .output_channels = 96, .input_channels = 64}, Scheme::kF32, 32));
  EXPECT_EQ(BitsPerWeight(model), (8.5 + 3 * 32.0) / 4);
}

}  // namespace
}  // namespace cria::cli
