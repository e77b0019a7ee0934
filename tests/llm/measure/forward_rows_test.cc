#include "llm/measure/forward_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "decode/open_sequence.h"
#include "decode/scripted_model.h"

namespace cria {
namespace {

constexpr size_t kNumTokens = 10;

ScriptedModel CountsBy(int step, size_t chunk_tokens) {
  return {kNumTokens, 16, chunk_tokens, [step](std::span<const int32_t> context) {
            return (context.back() + step) % static_cast<int32_t>(kNumTokens);
          }};
}

TEST(ForwardRows, VisitsTheLastRowsOfAllModels) {
  ScriptedModel one = CountsBy(1, 4), two = CountsBy(2, 3);
  const auto first = OpenSequence::Create(one.sequences(), 16);
  const auto second = OpenSequence::Create(two.sequences(), 16);
  ASSERT_TRUE(first && second);
  const ModelSequence sequences[] = {{&one, first->id()}, {&two, second->id()}};
  const std::vector<int32_t> tokens = {0, 1, 2, 3, 4, 5, 6};
  std::vector<size_t> rows;
  const auto visit = [&](size_t row, std::span<const std::span<const float>> logits) -> Status {
    rows.push_back(row);
    EXPECT_EQ(logits.size(), 2u);
    EXPECT_EQ(logits[0][static_cast<size_t>(tokens[row] + 1)], 8.0f);
    EXPECT_EQ(logits[1][static_cast<size_t>(tokens[row] + 2)], 8.0f);
    return {};
  };
  ASSERT_TRUE(ForwardRows(sequences, tokens, 0, 5, visit));
  EXPECT_EQ(rows, (std::vector<size_t>{2, 3, 4, 5, 6}));
  const std::vector<ScriptedModel::ForwardCall> calls = {{0, {0, 1, 2}}, {3, {3, 4, 5}}, {6, {6}}};
  EXPECT_EQ(one.calls, calls);
  EXPECT_EQ(two.calls, calls);
  EXPECT_EQ(one.rows_wanted, (std::vector<size_t>{1, 3, 1}));

  // Later tokens are replaced.
  rows.clear();
  const std::vector<int32_t> others = {7, 8};
  ASSERT_TRUE(ForwardRows(sequences, others, 2, 0, visit));
  EXPECT_TRUE(rows.empty());
  EXPECT_EQ(std::vector<int32_t>(one.cache().begin(), one.cache().end()),
            (std::vector<int32_t>{0, 1, 7, 8}));
  ASSERT_TRUE(ForwardRows(sequences, {}, 2, 0, visit));
}

TEST(ForwardRows, ErrorsEndIt) {
  ScriptedModel model = CountsBy(1, 2);
  const auto sequence = OpenSequence::Create(model.sequences(), 16);
  const ModelSequence sequences[] = {{&model, sequence->id()}};
  const std::vector<int32_t> tokens = {0, 1, 2, 3};
  size_t visits = 0;
  const auto fail = [&](size_t, std::span<const std::span<const float>>) -> Status {
    ++visits;
    return Fail(ErrorCode::kCancelled, "the test says so");
  };
  EXPECT_EQ(ForwardRows(sequences, tokens, 0, 4, fail).error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(visits, 1u);
  model.fail_at_call = model.calls.size();
  EXPECT_EQ(ForwardRows(sequences, tokens, 0, 4, fail).error().code(), ErrorCode::kInternal);
  EXPECT_EQ(visits, 1u);
}

}  // namespace
}  // namespace cria
