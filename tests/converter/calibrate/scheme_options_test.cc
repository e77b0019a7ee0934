#include "converter/calibrate/scheme_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/unwrap.h"

namespace cria {
namespace {

using testing::ElementsAre;

// A matrix with options of these bytes, in int8 with one column, and costs.
MatrixOptions MatrixWith(std::vector<std::pair<size_t, double>> options) {
  MatrixOptions matrix;
  for (const auto& [bytes, cost] : options) {
    const TensorLayout layout = {.scheme = Scheme::kF32,
                                 .output_channels = 1,
                                 .input_channels = bytes / sizeof(float),
                                 .padded_input_channels = bytes / sizeof(float)};
    matrix.options.push_back({.layout = layout, .cost = cost});
    EXPECT_EQ(matrix.options.back().bytes(), bytes);
  }
  return matrix;
}

uint64_t BytesOf(const std::vector<MatrixOptions>& matrices, const OptionChoice& chosen) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < chosen.size(); ++i) bytes += matrices[i].options[chosen[i]].bytes();
  return bytes;
}

double CostOf(const std::vector<MatrixOptions>& matrices, const OptionChoice& chosen) {
  double cost = 0.0;
  for (size_t i = 0; i < chosen.size(); ++i) cost += matrices[i].options[chosen[i]].cost;
  return cost;
}

TEST(SchemeOptions, BytesGoWhereTheySaveMost) {
  const std::vector<MatrixOptions> matrices = {MatrixWith({{80, 0.0}, {40, 1.0}, {36, 1.1}}),
                                               MatrixWith({{80, 0.0}, {40, 5.0}, {36, 6.0}}),
                                               MatrixWith({{800, 0.0}, {400, 9.0}, {360, 9.5}})};
  const auto choose = [&](uint64_t bytes) {
    return Unwrap(ChooseOptions(matrices, bytes)).front();
  };
  EXPECT_EQ(choose(432), (OptionChoice{2, 2, 2}));
  EXPECT_EQ(choose(436), (OptionChoice{2, 1, 2}));
  EXPECT_EQ(choose(476), (OptionChoice{2, 0, 2}));
  EXPECT_EQ(choose(520), (OptionChoice{0, 0, 2}));
  // The large matrix has no room, but that leaves the others theirs.
  EXPECT_EQ(choose(900), (OptionChoice{0, 0, 1}));
  EXPECT_EQ(choose(960), (OptionChoice{0, 0, 0}));
  const auto refused = ChooseOptions(matrices, 431);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
}

TEST(SchemeOptions, WhatIsAlwaysInF32HasNone) {
  FilePlan plan;
  for (const TensorRole role :
       {TensorRole::kRouter, TensorRole::kExpertsDownProj, TensorRole::kInputLayernorm}) {
    plan.tensors.emplace_back().stored.spec = {role, 0, 64, 64};
  }
  const std::vector<MatrixOptions> matrices = AllSchemeOptions(plan);
  ASSERT_EQ(matrices.size(), 1);
  EXPECT_EQ(matrices[0].tensor, 1);
}

TEST(SchemeOptions, TablesHaveAChoiceIfThatIsWanted) {
  FilePlan plan;
  plan.tensors.emplace_back().stored.spec = {TensorRole::kEmbedTokens, kNoLayer, 64, 64};
  plan.tensors.emplace_back().stored.spec = {TensorRole::kDownProj, 0, 64, 64};
  plan.tensors.emplace_back().stored.spec = {TensorRole::kNorm, kNoLayer, 64, 0};
  plan.tensors.emplace_back().stored.spec = {TensorRole::kLmHead, kNoLayer, 64, 64};
  const auto tensors_of = [&](ChosenMatrices which) {
    std::vector<size_t> tensors;
    for (const MatrixOptions& matrix : AllSchemeOptions(plan, which)) {
      tensors.push_back(matrix.tensor);
    }
    return tensors;
  };
  EXPECT_EQ(tensors_of(ChosenMatrices::kLayers), (std::vector<size_t>{1}));
  EXPECT_EQ(tensors_of(ChosenMatrices::kLayersAndTables), (std::vector<size_t>{0, 1, 3}));
}

TEST(SchemeOptions, ALargerOptionThatCostsMoreIsNeverChosen) {
  const std::vector<MatrixOptions> matrices = {MatrixWith({{80, 2.0}, {40, 1.0}, {44, 1.5}})};
  EXPECT_THAT(Unwrap(ChooseOptions(matrices, 1000)), ElementsAre(OptionChoice{1}));
}

TEST(SchemeOptions, NeverCostMoreThanOneOptionForAll) {
  // The second step of the small matrix saves more for each byte than that of the large one, but
  // leaves it no room.
  const std::vector<MatrixOptions> matrices = {MatrixWith({{80, 5.0}, {40, 13.0}, {120, 0.6}}),
                                               MatrixWith({{200, 0.5}, {100, 10.0}, {300, 0.4}})};
  EXPECT_THAT(Unwrap(ChooseOptions(matrices, 280)), ElementsAre(OptionChoice{0, 0}));
  EXPECT_EQ(Unwrap(ChooseOptions(matrices, 279)).front(), (OptionChoice{2, 1}));
}

TEST(SchemeOptions, ASecondChoiceHasTheTwoOptionsThatTheRoomIsBetween) {
  const std::vector<MatrixOptions> matrices = {
      MatrixWith({{80, 1.0}, {60, 5.0}, {40, 6.0}, {52, 7.0}}),
      MatrixWith({{80, 5.0}, {60, 6.0}, {40, 6.5}, {52, 7.0}}),
      MatrixWith({{80, 6.0}, {60, 7.0}, {40, 8.0}, {52, 9.0}})};
  EXPECT_THAT(Unwrap(ChooseOptions(matrices, 180)),
              ElementsAre(OptionChoice{0, 2, 1}, OptionChoice{1, 1, 1}));
  EXPECT_THAT(Unwrap(ChooseOptions(matrices, 200)),
              ElementsAre(OptionChoice{0, 2, 0}, OptionChoice{0, 1, 1}));
  // The last option costs more than a smaller one, so it is none of the two.
  EXPECT_THAT(Unwrap(ChooseOptions(matrices, 160)),
              ElementsAre(OptionChoice{0, 2, 2}, OptionChoice{1, 2, 1}));
  EXPECT_THAT(Unwrap(ChooseOptions(matrices, 240)), ElementsAre(OptionChoice{0, 0, 0}));
}

// Against every combination: no cheaper one takes fewer bytes than what was chosen less the largest
// step.
TEST(SchemeOptions, ComeCloseToTheBestCombination) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<MatrixOptions> matrices;
    for (int i = 0; i < 5; ++i) {
      const size_t size = 4 * (10 + random() % 20);
      const double cost = 1.0 + random() % 100;
      matrices.push_back(MatrixWith(
          {{2 * size, 0.01 * cost}, {size, cost}, {size - 4, 1.2 * cost}, {size - 8, 1.5 * cost}}));
    }
    const uint64_t room = 4 * (180 + random() % 150);
    const auto choices = ChooseOptions(matrices, room);
    if (!choices) continue;
    const OptionChoice& chosen = choices->front();
    EXPECT_LE(BytesOf(matrices, chosen), room);
    constexpr uint64_t kLargestStep = 4 * 31;
    OptionChoice other(5);
    for (size_t code = 0; code < 1024; ++code) {
      for (size_t i = 0; i < 5; ++i) other[i] = (code >> (2 * i)) % 4;
      if (BytesOf(matrices, other) + kLargestStep <= room) {
        EXPECT_GE(CostOf(matrices, other), CostOf(matrices, chosen) - 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace cria
