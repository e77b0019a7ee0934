#include "cli/convert/sampled_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace cria::cli {
namespace {

// Feeds `sampled` whenever a token is asked for, until it is used up.
std::vector<int32_t> Write(const Turns& turns, const std::vector<int32_t>& stop_tokens,
                           const std::vector<int32_t>& sampled, size_t seed = 0) {
  SampledWindow window(turns, stop_tokens, 100, seed);
  for (size_t next = 0; !window.needs_logits() || next < sampled.size();) {
    const bool is_sampled = window.needs_logits();
    window.Next(is_sampled ? sampled[next] : -1);
    next += is_sampled ? 1 : 0;
  }
  return {window.tokens().begin(), window.tokens().end()};
}

TEST(SampledWindow, WithoutATemplateTextsFollowEachOther) {
  const Turns turns = {.opening = {1}, .answer = {}};
  EXPECT_EQ(Write(turns, {2}, {5, 6, 2, 7, 8}), (std::vector<int32_t>{1, 5, 6, 2, 1, 7, 8}));
}

TEST(SampledWindow, TheTemplateWritesWhatIsBetweenMessages) {
  // Both sides end with 9; then 4 opens the answer.
  const Turns turns = {.opening = {1, 3}, .answer = {9, 10, 4}};
  EXPECT_EQ(Write(turns, {2, 9}, {50, 9, 60, 61, 9, 51, 9, 62}),
            (std::vector<int32_t>{1, 3, 50, 9, 10, 4, 60, 61, 9, 1, 3, 51, 9, 10, 4, 62}));
  // A text may end at any time.
  EXPECT_EQ(Write(turns, {2, 9}, {50, 2, 51}), (std::vector<int32_t>{1, 3, 50, 2, 1, 3, 51}));
}

TEST(SampledWindow, WithoutAnythingBeforeItBeginsWithAnyToken) {
  EXPECT_EQ(Write({}, {2}, {5, 6}, 107), (std::vector<int32_t>{7, 5, 6}));
  EXPECT_EQ(Write({}, {2}, {5, 2, 6}, 3), (std::vector<int32_t>{3, 5, 2, 6}));
}

}  // namespace
}  // namespace cria::cli
