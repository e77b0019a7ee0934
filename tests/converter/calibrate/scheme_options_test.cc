#include "converter/calibrate/scheme_options.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cria {
namespace {

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

uint64_t BytesOf(const std::vector<MatrixOptions>& matrices, const std::vector<size_t>& chosen) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < chosen.size(); ++i) bytes += matrices[i].options[chosen[i]].bytes();
  return bytes;
}

double CostOf(const std::vector<MatrixOptions>& matrices, const std::vector<size_t>& chosen) {
  double cost = 0.0;
  for (size_t i = 0; i < chosen.size(); ++i) cost += matrices[i].options[chosen[i]].cost;
  return cost;
}

TEST(SchemeOptions, BytesGoWhereTheySaveMost) {
  const std::vector<MatrixOptions> matrices = {MatrixWith({{80, 0.0}, {40, 1.0}, {36, 1.1}}),
                                               MatrixWith({{80, 0.0}, {40, 5.0}, {36, 6.0}}),
                                               MatrixWith({{800, 0.0}, {400, 9.0}, {360, 9.5}})};
  const auto choose = [&](uint64_t bytes) {
    const auto chosen = ChooseOptions(matrices, bytes);
    EXPECT_TRUE(chosen);
    return *chosen;
  };
  EXPECT_EQ(choose(432), (std::vector<size_t>{2, 2, 2}));
  EXPECT_EQ(choose(436), (std::vector<size_t>{2, 1, 2}));
  EXPECT_EQ(choose(476), (std::vector<size_t>{2, 0, 2}));
  EXPECT_EQ(choose(520), (std::vector<size_t>{0, 0, 2}));
  // The large matrix has no room, but that leaves the others theirs.
  EXPECT_EQ(choose(900), (std::vector<size_t>{0, 0, 1}));
  EXPECT_EQ(choose(960), (std::vector<size_t>{0, 0, 0}));
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
  EXPECT_EQ(*ChooseOptions(matrices, 1000), (std::vector<size_t>{1}));
}

TEST(SchemeOptions, NeverCostMoreThanOneOptionForAll) {
  // The second step of the small matrix saves more for each byte than that of the large one, but
  // leaves it no room.
  const std::vector<MatrixOptions> matrices = {MatrixWith({{80, 5.0}, {40, 13.0}, {120, 0.6}}),
                                               MatrixWith({{200, 0.5}, {100, 10.0}, {300, 0.4}})};
  EXPECT_EQ(*ChooseOptions(matrices, 280), (std::vector<size_t>{0, 0}));
  EXPECT_EQ(*ChooseOptions(matrices, 279), (std::vector<size_t>{2, 1}));
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
    const auto chosen = ChooseOptions(matrices, room);
    if (!chosen) continue;
    EXPECT_LE(BytesOf(matrices, *chosen), room);
    constexpr uint64_t kLargestStep = 4 * 31;
    std::vector<size_t> other(5);
    for (size_t code = 0; code < 1024; ++code) {
      for (size_t i = 0; i < 5; ++i) other[i] = (code >> (2 * i)) % 4;
      if (BytesOf(matrices, other) + kLargestStep <= room) {
        EXPECT_GE(CostOf(matrices, other), CostOf(matrices, *chosen) - 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace cria
