#include "llm/measure/text_windows.h"

#include <gtest/gtest.h>

#include <vector>

namespace cria {
namespace {

// All inputs and all targets, window after window.
void ExpectWindows(const std::vector<int32_t>& tokens, int32_t bos, size_t window_tokens,
                   const std::vector<std::vector<int32_t>>& inputs,
                   const std::vector<std::vector<int32_t>>& targets) {
  const auto windows = TextWindows::Create(tokens, bos, window_tokens, 100, 100);
  ASSERT_TRUE(windows) << windows.error().message();
  ASSERT_EQ(windows->num_windows(), inputs.size());
  size_t num_targets = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(windows->Inputs(i), inputs[i]);
    const auto window = windows->Targets(i);
    EXPECT_EQ(std::vector<int32_t>(window.begin(), window.end()), targets[i]);
    num_targets += window.size();
  }
  EXPECT_EQ(windows->num_targets(), num_targets);
  EXPECT_EQ(windows->targets_per_window(), window_tokens - 1);
}

TEST(TextWindows, BeginWithBos) {
  ExpectWindows({5, 6, 7, 8, 9}, 1, 4, {{1, 5, 6}, {1, 8}}, {{5, 6, 7}, {8, 9}});
  ExpectWindows({5, 6, 7}, 1, 4, {{1, 5, 6}}, {{5, 6, 7}});
  ExpectWindows({5}, 1, 2, {{1}}, {{5}});
}

TEST(TextWindows, WithoutBosBeginWithTheTokenBefore) {
  ExpectWindows({5, 6, 7, 8, 9}, -1, 4, {{5, 6, 7}, {8}}, {{6, 7, 8}, {9}});
  ExpectWindows({5, 6}, -1, 2, {{5}}, {{6}});
}

TEST(TextWindows, WhatCannotBePredictedIsAnError) {
  const auto code = [](std::vector<int32_t> tokens, int32_t bos, size_t window_tokens) {
    const auto windows = TextWindows::Create(tokens, bos, window_tokens, 8, 10);
    EXPECT_FALSE(windows);
    return windows.error().code();
  };
  EXPECT_EQ(code({}, 1, 4), ErrorCode::kUsage);
  EXPECT_EQ(code({3}, -1, 4), ErrorCode::kUsage);
  EXPECT_EQ(code({3, 4}, 1, 1), ErrorCode::kUsage);
  EXPECT_EQ(code({3, 4}, 1, 9), ErrorCode::kUsage);
  EXPECT_EQ(code({3, 10}, 1, 4), ErrorCode::kOutOfRange);
  EXPECT_EQ(code({3, -1}, 1, 4), ErrorCode::kOutOfRange);
  EXPECT_EQ(code({3, 4}, 10, 4), ErrorCode::kOutOfRange);
}

}  // namespace
}  // namespace cria
